// Requests for flame graphs in protobuf: proto/hearth/v1/query.proto.
const text = new TextEncoder();

export interface Selection {
  type: string;
  selector: string;
  startMs: number;
  endMs: number;
  // Stacks must contain all of these functions, and none of those.
  functions: string[];
  without: string[];
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
  const stacks: number[] = [];
  for (const name of selection.functions) {
    stacks.push(...field(2, text.encode(name)));
  }
  if (selection.functions.length > 1) {
    stacks.push(3 * 8, 1);
  }
  for (const name of selection.without) {
    stacks.push(...field(4, text.encode(name)));
  }
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

const FORMAT_FLAMEGRAPH = 1;

export function encodeMerge(selection: Selection, maxNodes: number): Uint8Array {
  return new Uint8Array([...field(1, encodeSelection(selection)), 2 * 8, FORMAT_FLAMEGRAPH, 3 * 8, ...varint(maxNodes)]);
}

export function encodeDiff(left: Selection, right: Selection, maxNodes: number): Uint8Array {
  const noise = [5 * 8, 1];
  return new Uint8Array([...field(1, encodeSelection(left)), ...field(2, encodeSelection(right)), 3 * 8, ...varint(maxNodes), ...noise]);
}
