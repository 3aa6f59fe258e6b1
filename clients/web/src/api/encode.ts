// Requests for flame graphs in protobuf: proto/hearth/v1/query.proto.
const text = new TextEncoder();

// Tables of Top in the order of hearth.v1.TopKind, which begins with 1.
export const TOP_KINDS = ["FUNCTION", "LINE", "FILE", "DIRECTORY", "CLASS", "PACKAGE", "MODULE", "THREAD", "FRAME_KIND"] as const;
export type TopKind = (typeof TOP_KINDS)[number];

// Samples that are counted in at least one of these rows of a table; "" is the row of everything unknown.
export interface RowFilter {
  kind: TopKind;
  names: string[];
}

export interface Selection {
  type: string;
  selector: string;
  startMs: number;
  endMs: number;
  // Stacks must contain all of these functions, and none of those.
  functions: string[];
  without: string[];
  rows?: RowFilter[];
  // The functions that stacks begin with, root first.
  callSite?: string[];
  // Samples of any of these profiles, spans or traces only.
  profileIds?: string[];
  spanIds?: string[];
  traceIds?: string[];
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  while (value >= 128) {
    bytes.push((value % 128) | 128);
    value = Math.floor(value / 128);
  }
  bytes.push(value);
  return bytes;
}

function field(number: number, bytes: Uint8Array | number[]): number[] {
  return [...varint(number * 8 + 2), ...varint(bytes.length), ...bytes];
}

function texts(number: number, values: string[] = []): number[] {
  return values.flatMap((value) => field(number, text.encode(value)));
}

function encodeSelection(selection: Selection): number[] {
  const stacks = [
    ...texts(1, selection.callSite),
    ...texts(2, selection.functions),
    ...(selection.functions.length > 1 ? [3 * 8, 1] : []),
    ...texts(4, selection.without),
    ...(selection.rows ?? []).flatMap(({ kind, names }) => field(7, [8, TOP_KINDS.indexOf(kind) + 1, ...texts(2, names)])),
  ];
  return [
    ...field(1, text.encode(selection.type)),
    ...field(2, text.encode(selection.selector)),
    3 * 8,
    ...varint(Math.floor(selection.startMs)),
    4 * 8,
    ...varint(Math.floor(selection.endMs)),
    ...(stacks.length > 0 ? field(5, stacks) : []),
    ...texts(6, selection.profileIds),
    ...texts(7, selection.spanIds),
    ...texts(8, selection.traceIds),
  ];
}

export type StackConditions = Pick<Selection, "rows" | "callSite"> & Partial<Pick<Selection, "functions" | "without">>;

// hearth.v1.StackFilter as JSON; undefined where there is no condition.
export function stacksJson({ functions = [], without = [], rows = [], callSite = [] }: StackConditions): object | undefined {
  if (functions.length + without.length + rows.length + callSite.length === 0) {
    return undefined;
  }
  const named = rows.map(({ kind, names }) => ({ kind: "TOP_KIND_" + kind, names }));
  return { callSite, functions, allFunctions: functions.length > 1, without, rows: named };
}

// hearth.v1.Selection as JSON.
export function selectionJson(selection: Selection): object {
  return {
    profileType: selection.type,
    labelSelector: selection.selector,
    start: String(Math.floor(selection.startMs)),
    end: String(Math.floor(selection.endMs)),
    stacks: stacksJson(selection),
  };
}

const FORMAT_FLAMEGRAPH = 1;

export function encodeMerge(selection: Selection, maxNodes: number): Uint8Array {
  return new Uint8Array([...field(1, encodeSelection(selection)), 2 * 8, FORMAT_FLAMEGRAPH, 3 * 8, ...varint(maxNodes)]);
}

export function encodeDiff(left: Selection, right: Selection, maxNodes: number, isJudged: boolean): Uint8Array {
  const noise = isJudged ? [5 * 8, 1] : [];
  return new Uint8Array([...field(1, encodeSelection(left)), ...field(2, encodeSelection(right)), 3 * 8, ...varint(maxNodes), ...noise]);
}
