// Flame graphs in the JSON of Pyroscope ("flamebearer"), as ad hoc profiles are answered.
import { UNKNOWN } from "./names";
import { OTHER, treeOf, type Decoded, type FlameTree } from "./tree";

interface Flamebearer {
  flamebearer?: { names?: string[]; levels?: number[][] };
  metadata?: { format?: string; units?: string; sampleRate?: number };
  leftTicks?: number;
  rightTicks?: number;
}

/** The unit of the values. Processor time is called "samples", of which there are as many in a second as nanoseconds. */
function unitOf(metadata: Flamebearer["metadata"]): string {
  const units = metadata?.units ?? "";
  return units === "samples" && metadata?.sampleRate === 1e9 ? "nanoseconds" : units;
}

export function decodeFlamebearer(text: string): Omit<Decoded, "aggregation"> {
  const answer = JSON.parse(text) as Flamebearer;
  const tree: FlameTree = treeOf(
    {
      names: (answer.flamebearer?.names ?? []).map((name) => name || UNKNOWN),
      levels: (answer.flamebearer?.levels ?? []).map((level) => Float64Array.from(level)),
      leftTicks: answer.leftTicks ?? 0,
      rightTicks: answer.rightTicks ?? 0,
    },
    answer.metadata?.format === "double" ? 2 : 1,
  );
  return { tree, unit: unitOf(answer.metadata), isCut: tree.names.includes(OTHER) };
}
