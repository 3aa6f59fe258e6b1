// The address is the whole state of the page: what is asked, how it is shown, where it is zoomed. Back is undo.
import { computed, signal, type ReadonlySignal } from "@preact/signals";

export const PAGES = ["explore", "profile", "diff", "traces", "profiles", "adhoc", "tasks", "policies", "network", "admin", "help", "compare", "function", "heatmap"] as const;
export type Page = (typeof PAGES)[number];
// Pages that are reached from another one, which stands for them in the bar.
export const PARENTS: Partial<Record<Page, Page>> = { compare: "diff", function: "profile", heatmap: "profile" };
export type Params = Record<string, string>;

interface Address {
  page: Page;
  params: Params;
  unknownPath: string; // of an address that names no page, which the first page answers
}

export function parseAddress(path: string, search: string): Address {
  const name = path.replace(/^\//, "");
  const page = PAGES.find((known) => known === name);
  const unknownPath = page || name === "" ? "" : path;
  return { page: page ?? "explore", params: Object.fromEntries(new URLSearchParams(search)), unknownPath };
}

// Parameters are sorted, so that one state has one address.
export function formatAddress(page: Page, params: Params): string {
  const kept = Object.entries(params).filter(([, value]) => value !== "");
  kept.sort(([a], [b]) => (a < b ? -1 : 1));
  const search = new URLSearchParams(kept).toString();
  return (page === "explore" ? "/" : "/" + page) + (search ? "?" + search : "");
}

function readAddress(): Address {
  return typeof location === "undefined" ? parseAddress("/", "") : parseAddress(location.pathname, location.search);
}

export const address = signal<Address>(readAddress());

// A component that asks for one parameter is rendered again when that one changes, and not with every zoom.
const named = new Map<string, ReadonlySignal<string | undefined>>();
export const shownPage = computed(() => address.value.page);

if (typeof window !== "undefined") {
  window.addEventListener("popstate", () => (address.value = readAddress()));
}

export function go(page: Page, params: Params): void {
  const next = formatAddress(page, params);
  if (next !== location.pathname + location.search) {
    history.pushState(null, "", next);
  }
  address.value = readAddress();
}

// As change, for each letter that is typed: back does not undo single letters.
export function amend(params: Params): void {
  history.replaceState(null, "", formatAddress(address.value.page, { ...address.value.params, ...params }));
  address.value = readAddress();
}

// Sets parameters of the page that is shown; an empty text removes one.
export function change(params: Params): void {
  go(address.value.page, { ...address.value.params, ...params });
}

export function param(name: string, otherwise = ""): string {
  let found = named.get(name);
  if (!found) {
    found = computed(() => address.value.params[name]);
    named.set(name, found);
  }
  return found.value ?? otherwise;
}

// A list in one parameter: entries are separated by line feeds, which names may contain, too.
export function parseList(text: string): string[] {
  return text
    .split("\n")
    .filter((entry) => entry !== "")
    .map((entry) => entry.replace(/\\(n|\\)/g, (_, c: string) => (c === "n" ? "\n" : c)));
}

export function formatList(entries: string[]): string {
  return entries.map((entry) => entry.replace(/\\/g, "\\\\").replace(/\n/g, "\\n")).join("\n");
}

// What one page hands to the next: the question, without how its answer was looked at.
export function question(): Params {
  return { q: param("q"), type: param("type"), from: param("from"), to: param("to") };
}
