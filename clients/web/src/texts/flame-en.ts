import type { FlameTexts } from "../flame/texts";

function counted(n: string, one: string, many: string): string {
  return `${n} ${n === "1" ? one : many}`;
}

export const flameEn: FlameTexts = {
  label: "Flame graph",
  path: "Callers of the zoomed frame and transforms",
  root: "total",
  function: "Function",
  total: "Total",
  self: "Self",
  ofAll: "of all",
  ofParent: "of its caller",
  ofZoom: "of the zoomed frame",
  baseline: "Baseline",
  comparison: "Comparison",
  change: "Change",
  points: "points",
  onlyNew: "only in the comparison",
  onlyBefore: "only in the baseline",
  less: "less",
  more: "more",
  neutral: "hardly changed",
  withinNoise: "within noise",
  beyondNoise: "beyond noise",
  interval: (low, high) => `95 %: ${low} … ${high}`,
  selfLow: "no self",
  selfHigh: "largest self",
  kinds: { go: "Go", java: "Java, .NET", script: "script", native: "native", kernel: "kernel", unknown: "unknown" },
  transforms: { focus: "Focus", hide: "Hide", recursion: "Collapse recursion", module: "Collapse package" },
  flipped: "From the leaves",
  hint: "Point at a frame to see its numbers; click to zoom.",
  empty: "No samples match.",
  remove: (what) => `Remove: ${what}`,
  culled: (frames) => `${counted(frames, "frame", "frames")}, each too narrow to draw`,
  samples: (counts) => counted(counts.join(" → "), "sample", "samples"),
  buildId: (id) => `build id ${id}`,
  serverSum: "Small frames that the server summed",
  matches: (frames, functions, value, share) =>
    `${counted(frames, "frame", "frames")} of ${counted(functions, "function", "functions")}: ${value}, ${share} of all`,
  matchList: "Functions that match",
  match: (frames, value, share) => `${value}, ${share} of all, in ${counted(frames, "frame", "frames")}`,
  moreMatches: (functions) => `and ${counted(functions, "smaller one", "smaller ones")}`,
  literal: "not a regular expression; searched for as text",
  gone: (frames, points) => `Gone: ${counted(frames, "frame", "frames")}, ${points} points`,
  frame: (name, total, self, children) =>
    `${name}, total ${total}, ${self === null ? "" : `self ${self}, `}${counted(children, "child", "children")}`,
};
