// Converts the values of monitors into lines to draw. A step shows its largest value, because a mean would hide the
// peaks that a threshold is about.
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
  lines: { name: string; peak: number; values: (number | null)[] }[];
}

// Agents report each five seconds. A step holds three reports, so that one late report makes no gap.
const LEAST_STEP_MS = 15_000;
const MAX_STEPS = 720;

export function lineName({ process = "", instance = "", uri = "" }: MonitorLine): string {
  return [process, instance && `(${instance})`, uri].filter(Boolean).join(" ");
}

export function maximaOf(lines: MonitorLine[], span: Span): Maxima {
  const stepMs = Math.max(LEAST_STEP_MS, Math.ceil((span.endMs - span.startMs) / MAX_STEPS));
  const n = Math.max(1, Math.ceil((span.endMs - span.startMs) / stepMs));
  const drawn = lines.map((line) => {
    const values: (number | null)[] = new Array(n).fill(null);
    let peak = 0;
    for (const { atMs, value = 0 } of line.points ?? []) {
      const i = Math.floor((Number(atMs) - span.startMs) / stepMs);
      if (i >= 0 && i < n) {
        values[i] = Math.max(values[i] ?? value, value);
        peak = Math.max(peak, value);
      }
    }
    return { name: lineName(line), peak, values };
  });
  drawn.sort((a, b) => b.peak - a.peak || (a.name < b.name ? -1 : 1));
  return { timesMs: Array.from({ length: n }, (_, i) => span.startMs + i * stepMs), lines: drawn };
}
