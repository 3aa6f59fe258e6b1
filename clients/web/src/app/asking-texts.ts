import { computed } from "@preact/signals";
import { askingEn } from "../texts/asking-en";
import { askingZh } from "../texts/asking-zh";
import { language } from "./settings";

export const askingTexts = computed(() => (language.value === "zh" ? askingZh : askingEn));
