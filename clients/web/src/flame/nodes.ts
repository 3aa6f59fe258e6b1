// A tree from a list of nodes in pre-order, as the server's Sandwich answers: the first node is the root.
import { emptyTree, linkChildren, type FlameTree } from "./tree";

interface ListedNode {
  name?: string;
  parent?: number;
  self?: string;
  total?: string;
}

export function treeOfNodes(nodes: readonly ListedNode[]): FlameTree {
  const names: string[] = [];
  const known = new Map<string, number>();
  const tree = emptyTree(names, Math.max(1, nodes.length));
  nodes.forEach(({ name = "", parent = 0, self = "0", total = "0" }, i) => {
    if (i > 0 && !(parent >= 0 && parent < i)) {
      throw new Error("the server sent a malformed tree");
    }
    let id = known.get(name);
    if (id === undefined) {
      id = names.push(name) - 1;
      known.set(name, id);
    }
    tree.name[i] = id;
    tree.parent[i] = i === 0 ? -1 : parent;
    tree.depth[i] = i === 0 ? 0 : tree.depth[parent]! + 1;
    tree.maxDepth = Math.max(tree.maxDepth, tree.depth[i]!);
    tree.self[i] = Number(self);
    tree.total[i] = Number(total);
  });
  linkChildren(tree);
  return tree;
}
