// The question that the address asks: selector, profile type, range. Shared by the query bar and all pages.
import { computed } from "@preact/signals";
import { call, refreshes } from "../api/connect";
import { useAnswer, type Answer } from "../api/use-answer";
import { isRelative, resolveRange, type Range, type Span } from "../time";
import { change, param, shownPage, type Page } from "../url";
import { preferredType } from "./preferred-type";
import { language, texts } from "./settings";

export interface ProfileType {
  ID: string;
  name: string;
  sampleType: string;
  sampleUnit: string;
  // True if no series of the selector has it; known only where the address names no type.
  isOutside?: boolean;
}

// A policy is tried on the past day; everything else begins with the last hour.
const FIRST_FROM: Partial<Record<Page, string>> = { policies: "now-24h" };

export const range = computed<Range>(() => ({
  from: param("from", FIRST_FROM[shownPage.value] ?? "now-1h"),
  to: param("to", "now"),
}));
export const selector = computed(() => param("q", "{}"));

// The range in milliseconds, the same for everything on the page until somebody asks again.
export const span = computed<Span>(() => {
  void refreshes.value;
  return resolveRange(range.value, Date.now());
});

// What every key of a question begins with.
export const rangeKey = computed(() => `${range.value.from} ${range.value.to}`);

export function formatTime(ms: number): string {
  return new Date(ms).toLocaleString(language.value, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });
}

// "Nov 28, 09:14 – 09:54", with the year where it is another one. What both ends share is said once.
export function formatSpan({ startMs, endMs }: Span): string {
  const isThisYear = new Date(startMs).getFullYear() === new Date().getFullYear();
  const format = new Intl.DateTimeFormat(language.value, {
    year: isThisYear ? undefined : "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
  });
  return format.formatRange(startMs, endMs);
}

export function rangeName(): string {
  const { from, to } = range.value;
  const known = to === "now" ? texts.value.ranges[from] : undefined;
  return known ?? formatSpan(span.value);
}

// "UTC+8" and "Asia/Shanghai": in which zone all times of the page are.
export function zoneNames(): { short: string; long: string } {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const minutes = -new Date(span.value.endMs).getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  const offset = minutes === 0 ? "" : (minutes > 0 ? "+" : "−") + hours + (rest > 0 ? ":" + String(rest).padStart(2, "0") : "");
  return { short: "UTC" + offset, long: timeZone };
}

export function freeze(): void {
  if (isRelative(range.value)) {
    change({ from: String(Math.floor(span.value.startMs)), to: String(Math.floor(span.value.endMs)) });
  }
}

// The types that series of the selector have; null if a page need not know, or if the selector is wrong, which the
// answer to its question says.
async function selectedTypes(message: { start: string; end: string }, abort: AbortSignal): Promise<string[] | null> {
  if (param("type") || selector.value === "{}") {
    return null;
  }
  const asked = { ...message, name: "__profile_type__", matchers: [selector.value] };
  return call<{ names?: string[] }>("querier.v1.QuerierService/LabelValues", asked, abort).then(
    (answer) => answer.names ?? [],
    () => null,
  );
}

export function useProfileTypes(): Answer<ProfileType[]> {
  const within = param("type") ? "" : selector.value;
  return useAnswer(`${rangeKey.value} ${within}`, async (abort) => {
    const message = { start: String(Math.floor(span.value.startMs)), end: String(Math.floor(span.value.endMs)) };
    const [answer, selected] = await Promise.all([
      call<{ profileTypes?: ProfileType[] }>("querier.v1.QuerierService/ProfileTypes", message, abort),
      selectedTypes(message, abort),
    ]);
    const types = answer.profileTypes ?? [];
    return selected === null ? types : types.map((type) => ({ ...type, isOutside: !selected.includes(type.ID) }));
  });
}

// The type of the address; without one, the preferred one.
export function chooseType(types: ProfileType[]): ProfileType | undefined {
  const wanted = param("type");
  return wanted ? types.find((type) => type.ID === wanted) : preferredType(types);
}

// "process_cpu cpu" of an id with five parts, and the unit of its values.
export function partsOfType(id: string): { name: string; unit: string } {
  const [name, sample, unit = ""] = id.split(":");
  return { name: name === sample ? name : `${name} ${sample}`, unit };
}

// The unit is seen at the values.
export function typeName(type: ProfileType): string {
  return partsOfType(type.ID).name;
}
