// The server's judgement of a diff: which changes are beyond noise. DiffNoise of hearth.v1.
import { Reader } from "./protobuf";

/** A change is beyond noise if its q is at most this. */
export const BEYOND_Q = 0.05;

const METHODS = ["unknown", "parts", "poisson"] as const;
export type Method = (typeof METHODS)[number];

interface FunctionChange {
  name: string;
  leftSelf: number;
  rightSelf: number;
  /** Of the share of its self, 0.01 is a point; the true change is between `low` and `high` in 95 % of all cases. */
  change: number;
  low: number;
  high: number;
  q: number;
}

/** The total per second; `low` and `high` are the interval of right - left. */
interface RateChange {
  left: number;
  right: number;
  low: number;
  high: number;
  p: number;
}

export interface Noise {
  method: Method;
  /** Why the method is not "parts", in the server's words. */
  reason: string;
  /** Of the left and the right side. */
  sliceSeconds: [number, number];
  slices: [number, number];
  series: [number, number];
  judgedNodes: number;
  changedNodes: number;
  judgedFunctions: number;
  changedFunctions: number;
  /** By node: how its share changed. Empty if nothing is judged. */
  low: Float32Array;
  high: Float32Array;
  q: Float32Array;
  functions: FunctionChange[];
  rate?: RateChange;
}

function readFloats(list: Reader): number[] {
  const values: number[] = [];
  while (!list.isDone) {
    values.push(list.float());
  }
  return values;
}

/** Calls `take` with the number of each field and a way to read it. */
function eachField(message: Reader, take: (field: number, wire: number) => boolean): void {
  while (!message.isDone) {
    const { field, wire } = message.tag();
    if (!take(field, wire)) {
      message.skip(wire);
    }
  }
}

function readFunction(message: Reader): FunctionChange {
  const numbers = [0, 0, 0, 0, 0, 0, 0, 0];
  let name = "";
  eachField(message, (field, wire) => {
    if (field === 1 && wire === 2) name = message.text(new TextDecoder());
    else if (field < numbers.length && wire === 0) numbers[field] = message.varint();
    else if (field < numbers.length && wire === 1) numbers[field] = message.double();
    else return false;
    return true;
  });
  const [, , leftSelf, rightSelf, change, low, high, q] = numbers as [number, number, number, number, number, number, number, number];
  return { name, leftSelf, rightSelf, change, low, high, q };
}

function readRate(message: Reader): RateChange {
  const numbers = [0, 0, 0, 0, 0, 0];
  eachField(message, (field, wire) => {
    if (field >= numbers.length || wire !== 1) return false;
    numbers[field] = message.double();
    return true;
  });
  const [, left, right, low, high, p] = numbers as [number, number, number, number, number, number];
  return { left, right, low, high, p };
}

/** The judgement of a graph with `n` nodes, whose levels are in the same order. */
export function readNoise(message: Reader, n: number): Noise {
  const numbers = new Array<number>(13).fill(0);
  const columns: [number[], number[], number[]] = [[], [], []];
  const functions: FunctionChange[] = [];
  let reason = "";
  let rate: RateChange | undefined;

  eachField(message, (field, wire) => {
    if (field === 2 && wire === 2) {
      reason = message.text(new TextDecoder());
    } else if (field < numbers.length && wire === 0) {
      numbers[field] = message.varint();
    } else if (field === 13 && wire === 2) {
      const level = message.message();
      eachField(level, (column, kind) => {
        if (column > 3 || kind !== 2) return false;
        columns[column - 1]!.push(...readFloats(level.message()));
        return true;
      });
    } else if (field === 14 && wire === 2) {
      functions.push(readFunction(message.message()));
    } else if (field === 15 && wire === 2) {
      rate = readRate(message.message());
    } else {
      return false;
    }
    return true;
  });

  const [low, high, q] = columns.map((column) => Float32Array.from(column)) as [Float32Array, Float32Array, Float32Array];
  if (q.length > 0 && (q.length !== n || low.length !== n || high.length !== n)) {
    throw new Error("the server judged other frames than it sent");
  }
  return {
    method: METHODS[numbers[1]!] ?? "unknown",
    reason,
    sliceSeconds: [numbers[3]!, numbers[4]!],
    slices: [numbers[5]!, numbers[6]!],
    series: [numbers[7]!, numbers[8]!],
    judgedNodes: numbers[9]!,
    changedNodes: numbers[10]!,
    judgedFunctions: numbers[11]!,
    changedFunctions: numbers[12]!,
    low,
    high,
    q,
    functions,
    rate,
  };
}
