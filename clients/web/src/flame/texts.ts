// What the flame graph says. The words stand in src/texts.

export interface FlameTexts {
  /** The name of the picture for assistive technology. */
  label: string;
  path: string;
  root: string;
  function: string;
  total: string;
  self: string;
  ofAll: string;
  ofParent: string;
  ofZoom: string;
  baseline: string;
  comparison: string;
  change: string;
  points: string;
  onlyNew: string;
  onlyBefore: string;
  less: string;
  more: string;
  neutral: string;
  withinNoise: string;
  beyondNoise: string;
  interval(low: string, high: string): string;
  selfLow: string;
  selfHigh: string;
  kinds: Record<"go" | "java" | "script" | "native" | "kernel" | "unknown", string>;
  transforms: Record<"focus" | "hide" | "recursion" | "module", string>;
  flipped: string;
  hint: string;
  empty: string;
  remove(what: string): string;
  culled(frames: string): string;
  /** One count, or those of both sides of a diff. */
  samples(counts: string[]): string;
  buildId(id: string): string;
  serverSum: string;
  matches(frames: string, functions: string, value: string, share: string): string;
  literal: string;
  matchList: string;
  match(frames: string, value: string, share: string): string;
  moreMatches(functions: string): string;
  gone(frames: string, points: string): string;
  frame(name: string, total: string, self: string | null, children: string): string;
}
