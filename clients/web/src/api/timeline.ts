// Totals over time by group, and what a person calls their height: cores, bytes, a number per second.
import { formatValue } from "../units";
import type { Span } from "../time";
import { call } from "./connect";
import { selectionJson, type StackConditions } from "./encode";

// How many points a chart asks for, about.
export const CHART_POINTS = 240;

export interface Line {
  labels: Record<string, string>;
  // One value for each time of the timeline; null where nothing was measured.
  values: (number | null)[];
  mean: number;
}

// The largest profile of a step.
export interface TimelineExemplar {
  // Of its step in the times of the timeline.
  index: number;
  profileId: string;
  ms: number;
  value: number;
}

export interface Timeline {
  timesMs: number[];
  lines: Line[];
  // Of the values: "cores", "bytes", "bytes/s", or the unit of a count.
  unit: string;
  // Of a timeline with a single line, if they were asked for.
  exemplars?: TimelineExemplar[];
}

interface Point {
  value?: number;
  timestamp: string;
  exemplars?: { timestamp?: string; profileId?: string; value?: string }[];
}

interface Answered {
  series?: { labels?: { name: string; value: string }[]; points?: Point[] }[];
  aggregation?: string;
  unit?: string;
}

interface TimelineQuestion extends StackConditions {
  type: string;
  selector: string;
  span: Span;
  stepS: number;
  groupBy: string[];
  limit: number;
  exemplars?: boolean;
}

export async function askTimeline(question: TimelineQuestion, abort: AbortSignal): Promise<Timeline> {
  const { span, stepS, functions = [], without = [] } = question;
  const answer = await call<Answered>(
    "hearth.v1.QueryService/Timeline",
    {
      selection: selectionJson({ ...question, ...span, functions, without }),
      step: stepS,
      groupBy: question.groupBy,
      limit: String(question.limit),
      exemplars: question.exemplars,
    },
    abort,
  );
  return toTimeline(answer, span, stepS);
}

export function toTimeline(answer: Answered, span: Span, stepS: number): Timeline {
  const isMean = answer.aggregation === "AGGREGATION_MEAN";
  const unit = answer.unit ?? "";
  // Sums of a step become rates; means of memory in use stay what they are.
  const factor = isMean ? 1 : unit === "nanoseconds" ? 1 / (stepS * 1e9) : 1 / stepS;
  const startMs = Math.floor(span.startMs);
  const n = Math.floor((Math.floor(span.endMs) - startMs) / (stepS * 1000)) + 1;
  const timesMs = Array.from({ length: n }, (_, i) => startMs + i * stepS * 1000);

  const indexOf = (point: Point) => Math.round((Number(point.timestamp) - startMs) / (stepS * 1000));

  const lines = (answer.series ?? []).map((series) => {
    const values: (number | null)[] = new Array(n).fill(null);
    let sum = 0;
    let present = 0;
    for (const point of series.points ?? []) {
      const i = indexOf(point);
      if (i >= 0 && i < n) {
        values[i] = (point.value ?? 0) * factor;
        sum += values[i]!;
        present++;
      }
    }
    const labels = Object.fromEntries((series.labels ?? []).map(({ name, value }) => [name, value]));
    return { labels, values, mean: present === 0 ? 0 : sum / (isMean ? present : n) };
  });
  const only = answer.series?.length === 1 ? (answer.series[0]!.points ?? []) : [];
  const exemplars = only.flatMap((point) =>
    (point.exemplars ?? []).map(({ timestamp = "0", profileId = "", value = "0" }) => {
      return { index: indexOf(point), profileId, ms: Number(timestamp), value: Number(value) };
    }),
  );
  return { timesMs, lines, unit: isMean ? unit : rateUnit(unit), exemplars: exemplars.filter(({ index }) => index >= 0 && index < n) };
}

export function rateUnit(unit: string): string {
  return unit === "nanoseconds" ? "cores" : unit === "bytes" ? "bytes/s" : "/s";
}

// A few thousandths of a core would be "0.00 cores".
const SMALL_CORES = 0.1;

export function formatHeight(value: number, unit: string): string {
  if (unit === "cores" && value > 0 && value < SMALL_CORES) {
    return formatValue(value * 1e9, "nanoseconds") + "/s";
  }
  return unit === "/s" ? formatValue(value, "count") + "/s" : formatValue(value, unit);
}

// What is left of the sum of everything once its largest groups have lines of their own. A time without a value in the
// sum has none in any group.
export function othersOf(all: Line, lines: Line[]): Line {
  const values = all.values.map((value, i) =>
    value === null ? null : Math.max(0, value - lines.reduce((sum, line) => sum + (line.values[i] ?? 0), 0)),
  );
  // The mean has the same divisor as that of the sum, which differs between rates and what is in use.
  const sumOf = (of: (number | null)[]) => of.reduce((sum: number, value) => sum + (value ?? 0), 0);
  const whole = sumOf(all.values);
  return { labels: {}, values, mean: whole > 0 ? (all.mean * sumOf(values)) / whole : 0 };
}
