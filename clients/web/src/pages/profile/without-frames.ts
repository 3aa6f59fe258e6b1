// Takes the frames of many functions out of a call tree at once.
import { TreeBuilder } from "../../flame/build";
import type { FlameTree } from "../../flame/tree";

/** The tree without the frames whose names are hidden; no total of another frame changes. */
export function withoutFrames(tree: FlameTree, isHidden: (name: string) => boolean): FlameTree {
  const hides = Uint8Array.from(tree.names, (name, i) => Number(i !== tree.name[0] && isHidden(name)));
  const builder = new TreeBuilder(tree.names);
  const places = new Int32Array(tree.n);
  for (let i = 1; i < tree.n; i++) {
    const parent = places[tree.parent[i]!]!;
    places[i] = hides[tree.name[i]!] ? parent : builder.child(parent, tree.name[i]!);
  }
  return builder.finish(tree, (move) => places.forEach((place, i) => move(i, place)));
}
