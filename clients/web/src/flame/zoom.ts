// The begin of a zoom's animation.
import { boxOf, type Layout } from "./layout";
import type { FlameTree } from "./tree";

/** x becomes x * scale + offset. */
export interface Stretch {
  scale: number;
  offset: number;
}

/**
 * The stretch of the new picture at which it lies where the old one was: the zoomed frame over its old box, or the new
 * picture so large that the frame zoomed before fills the width. null if there is nothing to animate.
 */
export function zoomStart(before: Layout, after: Layout, tree: FlameTree): Stretch | null {
  if (before.zoomNode === after.zoomNode || before.n === 0) {
    return null;
  }
  const width = after.width[0]!;
  const into = boxOf(before, tree, after.zoomNode);
  if (into >= before.rowStart[before.zoomRow]! && width > 0) {
    return { scale: before.width[into]! / width, offset: before.x[into]! };
  }
  const out = boxOf(after, tree, before.zoomNode);
  if (out >= 0 && after.width[out]! > 0) {
    const scale = width / after.width[out]!;
    return { scale, offset: -after.x[out]! * scale };
  }
  return null;
}
