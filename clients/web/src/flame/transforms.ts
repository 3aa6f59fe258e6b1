// Transforms of the call tree. Each is a pure function tree -> tree, so that any sequence of them can stand in a URL.
import { TreeBuilder } from "./build";
import { packagesOf } from "./names";
import type { FlameTree } from "./tree";

export type TransformKind = "focus" | "hide" | "recursion" | "module";

export interface Transform {
  kind: TransformKind;
  /** A function; for "module" a package. */
  name: string;
}

/** Maps every node to one of a new tree, or to -1 to leave its samples out; `place` sees its parent's place. */
function rebuild(
  tree: FlameTree,
  names: string[],
  place: (builder: TreeBuilder, node: number, parentPlace: number) => number,
): FlameTree {
  const builder = new TreeBuilder(names);
  const places = new Int32Array(tree.n);
  places[0] = place(builder, 0, -1);
  for (let i = 1; i < tree.n; i++) {
    places[i] = place(builder, i, places[tree.parent[i]!]!);
  }
  return builder.finish(tree, (move) => {
    for (let i = 0; i < tree.n; i++) {
      if (places[i]! >= 0) {
        move(i, places[i]!);
      }
    }
  });
}

/** Only what the function and its callees cost, whoever called it: its outermost calls become children of the root. */
export function focusFunction(tree: FlameTree, name: string): FlameTree {
  const wanted = tree.names.indexOf(name);
  return rebuild(tree, tree.names, (builder, node, parentPlace) => {
    if (node === 0) return -1;
    if (parentPlace >= 0) return builder.child(parentPlace, tree.name[node]!);
    return tree.name[node] === wanted ? builder.child(0, wanted) : -1;
  });
}

/** Frames of the function vanish; their own cost becomes that of their caller, so no total changes. */
export function hideFunction(tree: FlameTree, name: string): FlameTree {
  const hidden = tree.names.indexOf(name);
  return rebuild(tree, tree.names, (builder, node, parentPlace) => {
    if (node === 0) return 0;
    return tree.name[node] === hidden ? parentPlace : builder.child(parentPlace, tree.name[node]!);
  });
}

/** Inner calls of the function become its outermost call: f, g, f, h is shown as f, g and f, h. */
function collapseRecursion(tree: FlameTree, name: string): FlameTree {
  const wanted = tree.names.indexOf(name);
  const outermost = new Int32Array(tree.n).fill(-1);
  return rebuild(tree, tree.names, (builder, node, parentPlace) => {
    if (node === 0) return 0;
    const outer = outermost[tree.parent[node]!]!;
    outermost[node] = outer;
    if (tree.name[node] !== wanted) return builder.child(parentPlace, tree.name[node]!);
    if (outer < 0) outermost[node] = builder.child(parentPlace, wanted);
    return outermost[node]!;
  });
}

/** Calls within one package become a single frame with the package's name. */
function collapseModule(tree: FlameTree, packageName: string): FlameTree {
  const isInside = Uint8Array.from(packagesOf(tree.names), (name) => Number(name === packageName));
  const existing = tree.names.indexOf(packageName);
  const names = existing >= 0 ? tree.names : [...tree.names, packageName];
  const collapsed = existing >= 0 ? existing : tree.names.length;
  return rebuild(tree, names, (builder, node, parentPlace) => {
    if (node === 0) return 0;
    if (!isInside[tree.name[node]!]) return builder.child(parentPlace, tree.name[node]!);
    const parent = tree.parent[node]!;
    return parent > 0 && isInside[tree.name[parent]!] ? parentPlace : builder.child(parentPlace, collapsed);
  });
}

/** The tree from the leaves: who called what costs, most direct caller first. */
export function flip(tree: FlameTree): FlameTree {
  const builder = new TreeBuilder(tree.names);
  const ends = new Int32Array(tree.n).fill(-1);
  for (let i = 0; i < tree.n; i++) {
    const hasSelf = tree.self[i] !== 0 || (tree.diff !== undefined && tree.diff.leftSelf[i] !== tree.diff.rightSelf[i]);
    if (!hasSelf) {
      continue;
    }
    let place = 0;
    for (let frame = i; frame > 0; frame = tree.parent[frame]!) {
      place = builder.child(place, tree.name[frame]!);
    }
    ends[i] = place;
  }
  const inverted = builder.finish(tree, (move) => {
    for (let i = 0; i < tree.n; i++) {
      if (ends[i]! >= 0) {
        move(i, ends[i]!);
      }
    }
  });
  return { ...inverted, isInverted: true };
}

const APPLY: Record<TransformKind, (tree: FlameTree, name: string) => FlameTree> = {
  focus: focusFunction,
  hide: hideFunction,
  recursion: collapseRecursion,
  module: collapseModule,
};

export function applyTransforms(tree: FlameTree, transforms: readonly Transform[]): FlameTree {
  return transforms.reduce((t, transform) => APPLY[transform.kind](t, transform.name), tree);
}
