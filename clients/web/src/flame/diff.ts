// What changed between the two sides of a diff, in points of their own totals.
import { BEYOND_Q, type Noise } from "./noise";
import type { FlameTree } from "./tree";

export interface Change {
  /** Shares of each side's total, 0 to 1. */
  left: number;
  right: number;
  /** right - left. */
  points: number;
  isNew: boolean;
  isGone: boolean;
}

/** Where noise is not known, shares that differ by less are shown as unchanged. */
const NEUTRAL_POINTS = 0.001;

/** What a unit is of its side's total. */
function perTick(ticks: number): number {
  return ticks > 0 ? 1 / ticks : 0;
}

export function changeOf(tree: FlameTree, node: number): Change | null {
  const diff = tree.diff;
  if (!diff) {
    return null;
  }
  const leftTotal = diff.leftTotal[node]!;
  const rightTotal = diff.rightTotal[node]!;
  const left = leftTotal * perTick(diff.leftTicks);
  const right = rightTotal * perTick(diff.rightTicks);
  return {
    left,
    right,
    points: right - left,
    isNew: leftTotal === 0 && rightTotal > 0,
    isGone: rightTotal === 0 && leftTotal > 0,
  };
}

/** What the server knows of the noise in this tree; undefined if it could not judge, or the tree was transformed. */
export function judgementOf(tree: FlameTree): Noise | undefined {
  const noise = tree.diff?.noise;
  return noise && noise.method !== "unknown" ? noise : undefined;
}

/** Whether the change of a node is to be seen: beyond noise, or at least not small where noise is not known. */
export function isChanged(tree: FlameTree, node: number): boolean {
  const noise = judgementOf(tree);
  return noise ? noise.q[node]! <= BEYOND_Q : Math.abs(changeOf(tree, node)?.points ?? 0) >= NEUTRAL_POINTS;
}

/** A child with this part of its parent's change explains it. */
const EXPLAINS = 0.8;

/**
 * The frames whose totals changed beyond noise, the largest change first. A frame whose change is that of one frame below
 * it is left out for that one; of frames of one function, the largest stands for all.
 */
export function changedFrames(tree: FlameTree): number[] {
  const noise = judgementOf(tree);
  if (!noise) {
    return [];
  }
  const points = (node: number) => changeOf(tree, node)!.points;
  const explained = new Set<number>();
  const changed: number[] = [];
  for (let i = 1; i < tree.n; i++) {
    if (noise.q[i]! > BEYOND_Q) {
      continue;
    }
    changed.push(i);
    const parent = tree.parent[i]!;
    if (points(i) * Math.sign(points(parent)) >= EXPLAINS * Math.abs(points(parent))) {
      explained.add(parent);
    }
  }
  const seen = new Set<number>();
  return changed
    .filter((node) => !explained.has(node))
    .sort((a, b) => Math.abs(points(b)) - Math.abs(points(a)))
    .filter((node) => !seen.has(tree.name[node]!) && seen.add(tree.name[node]!));
}

/** The largest change that is shown, in either direction: the end of the symmetric scale. */
export function changeDomain(tree: FlameTree): number {
  const diff = tree.diff;
  if (!diff) {
    return 0;
  }
  const [left, right] = [perTick(diff.leftTicks), perTick(diff.rightTicks)];
  let largest = 0;
  for (let i = 1; i < tree.n; i++) {
    if (isChanged(tree, i)) {
      largest = Math.max(largest, Math.abs(diff.rightTotal[i]! * right - diff.leftTotal[i]! * left));
    }
  }
  return largest;
}

/** Outermost frames that only the left side has: how many, and the share of the left side that they were. */
export function goneFrames(tree: FlameTree): { frames: number; share: number } {
  const gone = { frames: 0, share: 0 };
  const diff = tree.diff;
  if (!diff) {
    return gone;
  }
  for (let i = 1; i < tree.n; i++) {
    const parent = tree.parent[i]!;
    if (diff.leftTotal[i]! > 0 && diff.rightTotal[i] === 0 && (parent === 0 || diff.rightTotal[parent]! > 0)) {
      gone.frames++;
      gone.share += diff.leftTotal[i]! * perTick(diff.leftTicks);
    }
  }
  return gone;
}
