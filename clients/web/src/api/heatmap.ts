// How many profiles, or spans of profiles, had which value at which time; and single ones as examples.
import type { Span } from "../time";
import { call } from "./connect";

export type HeatKind = "INDIVIDUAL" | "SPAN";

export interface Exemplar {
  timestamp?: string;
  profileId?: string;
  spanId?: string;
  traceId?: string;
  value?: string;
  labels?: { name: string; value?: string }[];
}

interface Answered {
  series?: { slots?: { timestamp: string; yMin?: number[]; counts?: number[]; exemplars?: Exemplar[] }[] }[];
}

// Columns are steps of time, rows are steps of the value, the smallest first.
export interface Heat {
  stepMs: number;
  // Ends of the columns.
  endsMs: number[];
  // Lower ends of the rows, and the upper end of the last.
  edges: number[];
  // By column * number of rows + row.
  counts: Int32Array;
  most: number;
  all: number;
}

export interface HeatQuestion {
  type: string;
  selector: string;
  kind: HeatKind;
  span: Span;
  stepS: number;
}

function ask({ type, selector, kind, span, stepS }: HeatQuestion, exemplars: boolean, abort: AbortSignal): Promise<Answered> {
  return call(
    "querier.v1.QuerierService/SelectHeatmap",
    {
      profileTypeID: type,
      labelSelector: selector,
      start: String(Math.floor(span.startMs)),
      end: String(Math.floor(span.endMs)),
      step: stepS,
      queryType: "HEATMAP_QUERY_TYPE_" + kind,
      exemplarType: "EXEMPLAR_TYPE_" + (exemplars ? kind : "NONE"),
    },
    abort,
  );
}

export async function askHeat(question: HeatQuestion, abort: AbortSignal): Promise<Heat> {
  return toHeat(await ask(question, false, abort), question.span, question.stepS);
}

export function toHeat(answer: Answered, span: Span, stepS: number): Heat {
  const slots = answer.series?.[0]?.slots ?? [];
  const stepMs = stepS * 1000;
  const startMs = Math.floor(span.startMs);
  // The first column ends at the start of the range and mostly lies before it.
  const first = slots.some(({ timestamp }) => Number(timestamp) <= startMs) ? 0 : 1;
  const last = Math.ceil((Math.floor(span.endMs) - startMs) / stepMs);
  const endsMs = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => startMs + (first + i) * stepMs);

  const lows = slots[0]?.yMin ?? [];
  const height = lows.length > 1 ? lows[1]! - lows[0]! : 0;
  // Of equal values all rows but the last are empty.
  const edges = height > 0 ? [...lows, lows[lows.length - 1]! + height] : lows.slice(0, 1).flatMap((low) => [low, low]);
  const rows = Math.max(0, edges.length - 1);
  const counts = new Int32Array(endsMs.length * rows);
  let most = 0;
  let all = 0;
  for (const { timestamp, counts: of = [] } of slots) {
    const column = Math.round((Number(timestamp) - endsMs[0]!) / stepMs);
    of.forEach((count, i) => {
      const row = rows === 1 ? 0 : i;
      if (count > 0 && column >= 0 && column < endsMs.length && row < rows) {
        counts[column * rows + row]! += count;
        most = Math.max(most, counts[column * rows + row]!);
        all += count;
      }
    });
  }
  return { stepMs, endsMs, edges, counts, most, all };
}

export interface Cell {
  column: number;
  row: number;
}

// The cell that holds a moment and a value, as an address names it; null if the answer has no such cell.
export function cellAt(heat: Heat, ms: number, value: number): Cell | null {
  const column = heat.endsMs.findIndex((end) => ms > end - heat.stepMs && ms <= end);
  const row = heat.edges.length - 2 - [...heat.edges.slice(0, -1)].reverse().findIndex((low) => low <= value);
  return column >= 0 && row >= 0 && row < heat.edges.length - 1 && value >= heat.edges[0]! ? { column, row } : null;
}

const PARTS = 40;

/**
 * Examples of a cell, the largest first. The server names the largest of each cell, so its time is asked about again
 * in cells that are smaller.
 */
export async function askExemplars(question: HeatQuestion, heat: Heat, { column, row }: Cell, abort: AbortSignal): Promise<Exemplar[]> {
  const endMs = heat.endsMs[column]!;
  const startMs = Math.max(Math.floor(question.span.startMs), endMs - heat.stepMs + 1);
  const partMs = Math.max(1, Math.ceil((endMs - startMs + 1) / PARTS));
  const span = { startMs: Math.min(startMs, endMs - 1), endMs };
  const answer = await ask({ ...question, span, stepS: partMs / 1000 }, true, abort);
  const isLast = row === heat.edges.length - 2;
  return (answer.series?.[0]?.slots ?? [])
    .flatMap((slot) => slot.exemplars ?? [])
    .filter(({ value = "0" }) => Number(value) >= heat.edges[row]! && (isLast || Number(value) < heat.edges[row + 1]!))
    .sort((a, b) => Number(b.value ?? 0) - Number(a.value ?? 0));
}
