// How many samples stand behind each frame. Profilers that measure time or bytes often count their samples as a type of its
// own; it is asked once a frame is described for the first time, as its answer costs what the first one did.
import { useEffect, useState } from "preact/hooks";
import { encodeMerge } from "../../api/encode";
import { useAnswer } from "../../api/use-answer";
import type { ProfileType } from "../../app/question";
import { whenIdle } from "../../flame/idle";
import { loadMerge } from "../../flame/load";
import type { FlameTree } from "../../flame/tree";
import { param } from "../../url";
import type { Asked } from "./profile-cost";
import { samplesType } from "./samples-type";

// Twice what the picture has: the frames that are cut are not the same.
const MAX_NODES = 32_768;

export function useSamples(asked: Asked | null, types: ProfileType[]): { counts?: FlameTree; want(): void } {
  const [wanted, setWanted] = useState("");
  const key = asked?.key ?? "";
  const type = asked ? samplesType(types, asked.selection.type) : undefined;
  // The detail line describes a zoomed frame before anybody points at one.
  const isZoomed = param("zoom") !== "";
  useEffect(() => (isZoomed ? whenIdle(() => setWanted(key)) : undefined), [isZoomed, key]);

  const answer = useAnswer(type && wanted === key ? `${key} ${type}` : null, (abort) =>
    loadMerge(encodeMerge({ ...asked!.selection, type: type! }, MAX_NODES), abort).then(({ tree }) => ({ tree, key })),
  );
  return { counts: answer.value?.key === key ? answer.value.tree : undefined, want: () => setWanted(key) };
}
