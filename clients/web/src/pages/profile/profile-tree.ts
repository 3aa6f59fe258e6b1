// The call tree of the page: cut by the server at first, and whole below the frames whose ids the address lists.
import { encodeMerge } from "../../api/encode";
import { useAnswer, type Answer } from "../../api/use-answer";
import { loadMerge, type Loaded } from "../../flame/load";
import { ancestorsOf, nameOf, nodeAt, pathOf, type FlameTree } from "../../flame/tree";
import { graft } from "./graft";
import type { Asked } from "./profile-cost";
import { addTo, listParam } from "./profile-state";

const MAX_NODES = 16_384;
const MAX_WHOLE_NODES = 262_144;
// The root has no id.
const ROOT = "*";

export function loadBelow(tree: FlameTree, node: number): void {
  addTo("full", pathOf(tree, node).join(".") || ROOT);
}

async function askWhole({ selection }: Asked, cut: Loaded, paths: string[], abort: AbortSignal): Promise<Loaded> {
  if (paths.includes(ROOT)) {
    return loadMerge(encodeMerge(selection, MAX_WHOLE_NODES), abort);
  }
  let tree = cut.tree;
  const notes = new Set(cut.notes);
  for (const path of paths) {
    const ids = path.split(".");
    const node = nodeAt(tree, ids);
    // Data of another hour may lack the frame.
    if (tree.depth[node] === ids.length) {
      const callSite = ancestorsOf(tree, node).slice(1).map((each) => nameOf(tree, each));
      const whole = await loadMerge(encodeMerge({ ...selection, callSite }, MAX_WHOLE_NODES), abort);
      whole.notes.forEach((note) => notes.add(note));
      tree = graft(tree, node, whole.tree, callSite);
    }
  }
  return { ...cut, tree, notes: [...notes] };
}

export function useTree(asked: Asked | null): Answer<Loaded> {
  const key = asked?.key ?? null;
  const cut = useAnswer(key, (abort) =>
    loadMerge(encodeMerge(asked!.selection, MAX_NODES), abort).then((loaded) => ({ ...loaded, key })),
  );
  const paths = listParam("full");
  const isReady = paths.length > 0 && cut.value !== undefined && cut.value.key === key && !cut.isLoading;
  const wholeKey = isReady ? `${key} ${paths.join("\n")}` : null;
  const whole = useAnswer(wholeKey, (abort) =>
    askWhole(asked!, cut.value!, paths, abort).then((loaded) => ({ ...loaded, key: wholeKey })),
  );
  const value = whole.value && whole.value.key === wholeKey ? whole.value : cut.value;
  return { value, error: cut.error ?? whole.error, isLoading: cut.isLoading || whole.isLoading };
}
