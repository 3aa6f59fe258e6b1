// Callers above, callees below. As the server's Sandwich: in a sample in which the function recurs, callers are those of
// the outermost call and callees those of the innermost.
import { TreeBuilder } from "./build";
import type { FlameTree } from "./tree";

export interface Sandwich {
  /** Below the root the function, below it its callers, theirs, and so on. */
  callers: FlameTree;
  callees: FlameTree;
  self: number;
  total: number;
}

export function sandwichOf(tree: FlameTree, name: string): Sandwich {
  const wanted = tree.names.indexOf(name);
  // Of each node: the outermost frame of the function at or above it, and the place of the node below the innermost.
  const outermost = new Int32Array(tree.n).fill(-1);
  const calleePlace = new Int32Array(tree.n).fill(-1);
  const callees = new TreeBuilder(tree.names);
  const callers = new TreeBuilder(tree.names);
  const callerEnds = new Int32Array(tree.n).fill(-1);
  let self = 0;
  let total = 0;

  for (let i = 1; i < tree.n; i++) {
    const parent = tree.parent[i]!;
    const isCall = tree.name[i] === wanted;
    outermost[i] = outermost[parent]!;
    if (isCall) {
      self += tree.self[i]!;
      calleePlace[i] = callees.child(0, wanted);
    } else if (calleePlace[parent]! >= 0) {
      calleePlace[i] = callees.child(calleePlace[parent]!, tree.name[i]!);
    }
    if (isCall && outermost[i]! < 0) {
      outermost[i] = i;
      total += tree.total[i]!;
      callerEnds[i] = placeCallers(tree, callers, i);
    }
  }

  return {
    callees: callees.finish(tree, (move) => {
      calleePlace.forEach((place, i) => place >= 0 && move(i, place));
    }),
    callers: {
      ...callers.finish(tree, (move) => {
        outermost.forEach((frame, i) => frame >= 0 && move(i, callerEnds[frame]!));
      }),
      isInverted: true,
    },
    self,
    total,
  };
}

function placeCallers(tree: FlameTree, callers: TreeBuilder, call: number): number {
  let place = 0;
  for (let frame = call; frame > 0; frame = tree.parent[frame]!) {
    place = callers.child(place, tree.name[frame]!);
  }
  return place;
}
