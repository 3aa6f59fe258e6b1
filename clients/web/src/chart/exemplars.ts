// Single profiles on a line over time, as diamonds that lead to them.
import type { TimelineExemplar } from "../api/timeline";

const REACH = 12;
const APART = 48;
const MAX_MARKS = 12;

export interface Mark {
  x: number;
  y: number;
  exemplar: TimelineExemplar;
}

/** The largest, none so near to another that either cannot be hit. */
export function spread(exemplars: readonly TimelineExemplar[], xOf: (exemplar: TimelineExemplar) => number): TimelineExemplar[] {
  const kept: TimelineExemplar[] = [];
  [...exemplars]
    .sort((a, b) => b.value - a.value)
    .forEach((exemplar) => {
      if (kept.length < MAX_MARKS && kept.every((other) => Math.abs(xOf(other) - xOf(exemplar)) >= APART)) kept.push(exemplar);
    });
  return kept;
}

export function nearest(marks: readonly Mark[], x: number, y: number): Mark | undefined {
  return marks.find((mark) => Math.abs(mark.x - x) <= REACH && Math.abs(mark.y - y) <= REACH);
}
