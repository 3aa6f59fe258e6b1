import { computed } from "@preact/signals";
import { pagesEn } from "../texts/pages-en";
import { pagesZh } from "../texts/pages-zh";
import { language } from "./settings";

export const pageTexts = computed(() => (language.value === "zh" ? pagesZh : pagesEn));
