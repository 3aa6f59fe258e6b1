// How a heatmap is drawn: the shades of its counts, and where the numbers of its axes stand.
import type { Heat } from "../api/heatmap";

export const SHADES = 5;

// The least count of each shade. Counts differ by magnitudes, so the shades do, too.
export function shadesOf(most: number): number[] {
  if (most <= SHADES) {
    return Array.from({ length: most }, (_, i) => i + 1);
  }
  const bounds = Array.from({ length: SHADES }, (_, i) => Math.round(most ** (i / SHADES)));
  return bounds.filter((bound, i) => i === 0 || bound > bounds[i - 1]!);
}

/** Of few shades the palest is the first and the strongest the last. */
export function colourIndex(shade: number, n: number): number {
  return n < 2 ? SHADES - 1 : Math.round((shade * (SHADES - 1)) / (n - 1));
}

export function shadeOf(bounds: readonly number[], count: number): number {
  let shade = bounds.length - 1;
  while (shade > 0 && count < bounds[shade]!) {
    shade--;
  }
  return shade;
}

const MINUTE = 60_000;
const TICKS = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080].map((minutes) => minutes * MINUTE);

/** Whole local times within the columns, at most `most` of them. */
export function timeTicks(heat: Heat, most: number): number[] {
  const n = heat.endsMs.length;
  if (n === 0) {
    return [];
  }
  const from = heat.endsMs[0]! - heat.stepMs;
  const to = heat.endsMs[n - 1]!;
  const every = TICKS.find((tick) => (to - from) / tick <= most) ?? TICKS[TICKS.length - 1]!;
  const zone = new Date(from).getTimezoneOffset() * MINUTE;
  const ticks: number[] = [];
  for (let at = Math.ceil((from - zone) / every) * every + zone; at <= to; at += every) {
    ticks.push(at);
  }
  return ticks;
}
