// Converts the trees of an analysis, whose elements have ids, into one tree for the flame graph.
import { TreeBuilder } from "./build";
import { emptyTree, type FlameTree } from "./tree";

interface ForestElement {
  id: number;
  /** If no element has this id, the element is a root. */
  parentId: number;
  name: string;
  total: number;
}

/** Parents stand before their children, as all analyses answer them. Equal names below one parent become one box. */
export function treeOfForest(trees: readonly ForestElement[][], rootName = "total"): FlameTree {
  const names = [rootName];
  const nameIds = new Map<string, number>();
  const idOf = (name: string) => {
    const known = nameIds.get(name);
    if (known !== undefined) {
      return known;
    }
    nameIds.set(name, names.length);
    return names.push(name) - 1;
  };
  const elements = trees.flat();
  elements.forEach(({ name }) => idOf(name));

  const builder = new TreeBuilder(names);
  const source = emptyTree(names, elements.length + 1);
  const nodes = new Int32Array(elements.length + 1);
  let at = 1;
  for (const tree of trees) {
    const places = new Map<number, number>();
    for (const { id, parentId, name, total } of tree) {
      const parent = places.get(parentId);
      nodes[at] = builder.child(parent === undefined ? 0 : nodes[parent]!, idOf(name));
      source.self[at]! += total;
      if (parent !== undefined) {
        // Durations of children may overlap, so their sum can exceed that of their parent.
        source.self[parent] = Math.max(0, source.self[parent]! - total);
      }
      places.set(id, at++);
    }
  }
  return builder.finish(source, (move) => nodes.forEach((to, from) => from > 0 && move(from, to)));
}
