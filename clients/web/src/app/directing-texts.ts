import { computed } from "@preact/signals";
import { directingEn } from "../texts/directing-en";
import { directingZh } from "../texts/directing-zh";
import { language } from "./settings";

export const directingTexts = computed(() => (language.value === "zh" ? directingZh : directingEn));
