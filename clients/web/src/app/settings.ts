// What a person chose once and finds again: theme, language, favourites. Everything else stands in the address.
import { computed, effect, signal } from "@preact/signals";
import { flameEn } from "../texts/flame-en";
import { flameZh } from "../texts/flame-zh";
import { en } from "../texts/en";
import { zh } from "../texts/zh";

type Theme = "light" | "dark";
type Language = "en" | "zh";

function read(name: string): string | null {
  try {
    return localStorage.getItem("hearth." + name);
  } catch {
    return null; // storage is switched off: the choice lasts as long as the page
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem("hearth." + name, value);
  } catch {
    // As above.
  }
}

function firstTheme(): Theme {
  const kept = read("theme");
  return kept === "light" || kept === "dark" ? kept : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function firstLanguage(): Language {
  const kept = read("language");
  return kept === "en" || kept === "zh" ? kept : navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export const theme = signal<Theme>(firstTheme());
export const language = signal<Language>(firstLanguage());
export const favourites = signal<string[]>((read("favourites") ?? "").split("\n").filter((name) => name !== ""));

export const texts = computed(() => (language.value === "zh" ? zh : en));
export const flameTexts = computed(() => (language.value === "zh" ? flameZh : flameEn));

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  keep("theme", theme.value);
});
effect(() => {
  document.documentElement.lang = language.value;
  keep("language", language.value);
});
effect(() => keep("favourites", favourites.value.join("\n")));

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
}

export function toggleLanguage(): void {
  language.value = language.value === "zh" ? "en" : "zh";
}

export function toggleFavourite(service: string): void {
  const kept = favourites.value;
  favourites.value = kept.includes(service) ? kept.filter((name) => name !== service) : [...kept, service];
}
