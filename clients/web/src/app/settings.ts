// What a person chose once and finds again: theme, language, colours, favourites. Everything else stands in the address, which may
// also ask for another theme, language or colouring than the chosen one.
import { computed, effect, signal } from "@preact/signals";
import { flameEn } from "../texts/flame-en";
import { flameZh } from "../texts/flame-zh";
import { en } from "../texts/en";
import { zh } from "../texts/zh";
import { amend, param } from "../url";

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
  const kept = param("theme") || read("theme");
  return kept === "light" || kept === "dark" ? kept : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function firstLanguage(): Language {
  const kept = param("language") || read("language");
  return kept === "en" || kept === "zh" ? kept : navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export const theme = signal<Theme>(firstTheme());
export const language = signal<Language>(firstLanguage());
export const favourites = signal<string[]>((read("favourites") ?? "").split("\n").filter((name) => name !== ""));

export const texts = computed(() => (language.value === "zh" ? zh : en));
export const flameTexts = computed(() => (language.value === "zh" ? flameZh : flameEn));

export const palette = signal(read("palette") ?? "");

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
effect(() => {
  document.documentElement.lang = language.value;
});
effect(() => keep("favourites", favourites.value.join("\n")));

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  keep("theme", theme.value);
  amend({ theme: "" });
}

export function toggleLanguage(): void {
  language.value = language.value === "zh" ? "en" : "zh";
  keep("language", language.value);
  amend({ language: "" });
}

export function keepPalette(name: string): void {
  palette.value = name;
  keep("palette", name);
}

export function toggleFavourite(service: string): void {
  const kept = favourites.value;
  favourites.value = kept.includes(service) ? kept.filter((name) => name !== service) : [...kept, service];
}
