// How many samples stand behind each frame. Profilers that measure time or bytes often count their samples as a type of its
// own; it is asked once a frame is described for the first time, as its answer costs what the first one did.
import { useEffect, useState } from "preact/hooks";
import { encodeMerge, type Selection } from "../api/encode";
import { useAnswer } from "../api/use-answer";
import { whenIdle } from "../flame/idle";
import { loadMerge } from "../flame/load";
import type { FlameTree } from "../flame/tree";
import { param } from "../url";
import { samplesType } from "./samples-type";

/** Twice what pictures have: the frames that are cut are not the same. */
export const MAX_COUNTED_NODES = 32_768;

export interface Samples<T> {
  counts?: T;
  /** Somebody looks at a frame. */
  want(): void;
}

interface Question {
  /** What the picture depends on; null while the picture is not drawn. */
  key: string | null;
  types: readonly string[];
  type: string;
  /** Parameters of the address that hold the zoom: the detail line describes a zoomed frame before anybody points at one. */
  zooms?: readonly string[];
}

/** Asks the question of a picture for the type that counts samples, and nothing where no type does. */
export function useSamplesOf<T>({ key, types, type, zooms = ["zoom"] }: Question, ask: (type: string, abort: AbortSignal) => Promise<T>): Samples<T> {
  const [wanted, setWanted] = useState<string | null>(null);
  const counting = key === null ? undefined : samplesType(types, type);
  const isZoomed = zooms.some((name) => param(name) !== "");
  useEffect(() => (isZoomed ? whenIdle(() => setWanted(key)) : undefined), [isZoomed, key]);

  const answer = useAnswer(counting && wanted === key ? `${key} ${counting}` : null, (abort) =>
    ask(counting!, abort).then((counts) => ({ counts, key })),
  );
  return { counts: answer.value?.key === key ? answer.value.counts : undefined, want: () => setWanted(key) };
}

/** The samples of one merged selection; `key` is what it depends on. */
export function useSamples(selection: Selection, key: string | null, types: readonly string[]): Samples<FlameTree> {
  return useSamplesOf({ key, types, type: selection.type }, (type, abort) =>
    loadMerge(encodeMerge({ ...selection, type }, MAX_COUNTED_NODES), abort).then(({ tree }) => tree),
  );
}
