// Converts the values of monitors into lines to draw. A step shows its highest value, because a mean would hide the peaks
// that a threshold is about, and its lowest.
import type { Span } from "../../time";

export interface MonitorLine {
  instance?: string;
  process?: string;
  uri?: string;
  points?: { atMs?: string; value?: number }[];
}

export interface Maxima {
  timesMs: number[];
  // The line with the highest peak first.
  lines: { name: string; peak: number; values: (number | null)[]; lows: (number | null)[] }[];
}

// What a server answered: every value, or the highest of each step, and for these the lowest, too.
export interface MonitorValues {
  lines: MonitorLine[];
  lows?: MonitorLine[];
  // 0 where every value is there.
  stepMs: number;
}

// Agents report each five seconds. A step holds three reports, so that one late report makes no gap.
const LEAST_STEP_MS = 15_000;
const MAX_STEPS = 720;

export function lineName({ process = "", instance = "", uri = "" }: MonitorLine): string {
  return [process, instance && `(${instance})`, uri].filter(Boolean).join(" ");
}

export function maximaOf({ lines, lows, stepMs: answered }: MonitorValues, span: Span): Maxima {
  const stepMs = answered || Math.max(LEAST_STEP_MS, Math.ceil((span.endMs - span.startMs) / MAX_STEPS));
  const first = Math.floor(span.startMs / stepMs) * stepMs;
  const n = Math.max(1, Math.ceil((span.endMs - first) / stepMs));
  const byStep = ({ points = [] }: MonitorLine, pick: (a: number, b: number) => number) => {
    const values: (number | null)[] = new Array(n).fill(null);
    for (const { atMs, value = 0 } of points) {
      const i = Math.floor((Number(atMs) - first) / stepMs);
      if (i >= 0 && i < n) {
        values[i] = pick(values[i] ?? value, value);
      }
    }
    return values;
  };
  const lowest = new Map((lows ?? lines).map((line) => [lineName(line), byStep(line, Math.min)]));
  const drawn = lines.map((line) => {
    const values = byStep(line, Math.max);
    const peak = values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
    return { name: lineName(line), peak, values, lows: lowest.get(lineName(line)) ?? values };
  });
  drawn.sort((a, b) => b.peak - a.peak || (a.name < b.name ? -1 : 1));
  return { timesMs: Array.from({ length: n }, (_, i) => first + i * stepMs), lines: drawn };
}
