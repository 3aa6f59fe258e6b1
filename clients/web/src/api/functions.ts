// Questions about single functions: which there are, their cost over time, who calls them, their lines.
import type { Span } from "../time";
import { call } from "./connect";
import { selectionJson, type Selection } from "./encode";
import { toTimeline, type Timeline } from "./timeline";

export interface Scope {
  type: string;
  selector: string;
  span: Span;
}

export interface Named {
  scope: Scope;
  name: string;
  // What an answer about the function depends on.
  key: string;
}

export type Measure = "self" | "total";

function selectionOf({ type, selector, span }: Scope) {
  return {
    profileType: type,
    labelSelector: selector,
    start: String(Math.floor(span.startMs)),
    end: String(Math.floor(span.endMs)),
  };
}

export interface TopRow {
  name?: string;
  self?: string;
  total?: string;
}

export interface Top {
  rows?: TopRow[];
  total?: string;
  unit?: string;
}

// The functions with the largest self whose names contain the text.
export function askTop(scope: Scope, text: string, limit: number, abort: AbortSignal): Promise<Top> {
  const search = text === "" ? "" : "(?i)" + text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return call("hearth.v1.QueryService/Top", { selection: selectionOf(scope), search, limit: String(limit) }, abort);
}

interface FunctionPoint {
  timestamp: string;
  self?: string;
  total?: string;
}

interface FunctionSeries {
  labels?: { name: string; value: string }[];
  points?: FunctionPoint[];
}

interface FunctionTimeline {
  series?: FunctionSeries[];
  aggregation?: string;
  unit?: string;
}

interface Grouping {
  stepS: number;
  groupBy: string[];
  limit: number;
}

function askFunctionTimeline(scope: Scope, name: string, { stepS, groupBy, limit }: Grouping, abort: AbortSignal): Promise<FunctionTimeline> {
  return call(
    "hearth.v1.QueryService/FunctionTimeline",
    { selection: selectionOf(scope), functions: [name], step: stepS, groupBy, limit: String(limit) },
    abort,
  );
}

// The ends of buckets that the server has sums for: a millisecond before whole steps.
export function wholeSteps({ startMs, endMs }: Span, stepS: number): Span {
  const stepMs = stepS * 1000;
  return { startMs: Math.floor(startMs / stepMs) * stepMs - 1, endMs: Math.ceil(endMs / stepMs) * stepMs - 1 };
}

export async function askHistory(scope: Scope, name: string, measure: Measure, grouping: Grouping, abort: AbortSignal): Promise<Timeline> {
  const { series = [], ...rest } = await askFunctionTimeline(scope, name, grouping, abort);
  const measured = series.map(({ labels, points = [] }) => ({
    labels,
    points: points.map((point) => ({ timestamp: point.timestamp, value: Number(point[measure] ?? 0) })),
  }));
  return toTimeline({ ...rest, series: measured }, scope.span, grouping.stepS);
}

export interface Part {
  name: string;
  self: number;
  total: number;
}

// The function's cost by the values of a label, in one bucket that is as long as the range.
export async function askByLabel(scope: Scope, name: string, label: string, limit: number, abort: AbortSignal): Promise<Part[]> {
  const stepS = (Math.floor(scope.span.endMs) - Math.floor(scope.span.startMs)) / 1000;
  const { series = [] } = await askFunctionTimeline(scope, name, { stepS, groupBy: [label], limit }, abort);
  // The bucket that ends at the start of the range holds what was before it.
  const within = (points: FunctionPoint[]) => points.find((point) => Number(point.timestamp) > scope.span.startMs);
  return series
    .map(({ labels = [], points = [] }) => ({
      name: labels[0]?.value ?? "",
      self: Number(within(points)?.self ?? 0),
      total: Number(within(points)?.total ?? 0),
    }))
    .filter(({ total }) => total > 0)
    .sort((a, b) => b.total - a.total);
}

interface SandwichNode {
  name?: string;
  parent?: number;
  self?: string;
  total?: string;
}

export interface Sandwich {
  self?: string;
  total?: string;
  whole?: string;
  unit?: string;
  callers?: SandwichNode[];
  callees?: SandwichNode[];
}

const MAX_SIDE_NODES = 4096;

export function askSandwich(selection: Selection, name: string, abort: AbortSignal, maxNodes = MAX_SIDE_NODES): Promise<Sandwich> {
  return call("hearth.v1.QueryService/Sandwich", { selection: selectionJson(selection), function: name, maxNodes: String(maxNodes) }, abort);
}

export interface Line {
  line?: string;
  self?: string;
  total?: string;
  file?: string;
  mapping?: string;
  buildId?: string;
}

/** "json.go:31", or what is known of it; empty: nothing. */
export function placeOf({ file, mapping = "", line = "0" }: Line): string {
  const place = file || mapping;
  return place !== "" && Number(line) > 0 ? `${place}:${line}` : place;
}

/** Where a line is written, then the binary and its build id, as far as they are known. */
export function placesOf(line: Line, sayBuildId: (id: string) => string): string[] {
  const { file = "", mapping = "", buildId = "" } = line;
  return [placeOf(line), file && mapping, buildId && sayBuildId(buildId)].filter((part) => part !== "");
}

export interface Lines {
  lines?: Line[];
  total?: string;
  unit?: string;
}

export function askLines(scope: Scope, name: string, abort: AbortSignal): Promise<Lines> {
  return call("hearth.v1.QueryService/Lines", { selection: selectionOf(scope), function: name }, abort);
}

export interface SpanRow {
  spanId?: string;
  traceId?: string;
  name?: string;
  endpoint?: string;
  service?: string;
  value?: string;
  spanCount?: string;
}

export interface Spans {
  rows?: SpanRow[];
  total?: string;
  unlabelled?: string;
  unit?: string;
}

// Spans, traces or endpoints, by the samples that contain the function.
export function askSpansOf(scope: Scope, name: string, by: string, limit: number, abort: AbortSignal): Promise<Spans> {
  const selection = { ...selectionOf(scope), stacks: { functions: [name] } };
  return call("hearth.v1.TraceProfileService/TopSpans", { selection, by: "SPANS_BY_" + by, limit: String(limit) }, abort);
}
