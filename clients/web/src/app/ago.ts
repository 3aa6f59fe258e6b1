// How long ago something was, in words: "2 days ago".
import { language } from "./settings";

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

export function formatAgo(ms: number, nowMs = Date.now()): string {
  const past = Math.max(0, nowMs - ms);
  const [unit, length] = UNITS.find(([, each]) => past >= each) ?? UNITS[UNITS.length - 1];
  return new Intl.RelativeTimeFormat(language.value, { numeric: "auto" }).format(-Math.floor(past / length), unit);
}
