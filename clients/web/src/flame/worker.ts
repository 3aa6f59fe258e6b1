// Decodes answers away from the page's thread. The typed arrays are handed over, not copied.
import { decodeDiff, decodeMerge, largestFirst, type FlameTree } from "./tree";

interface WorkRequest {
  id: number;
  kind: "merge" | "diff";
  bytes: Uint8Array;
}

function buffersOf(tree: FlameTree): ArrayBuffer[] {
  const arrays = [
    tree.name,
    tree.parent,
    tree.depth,
    tree.total,
    tree.self,
    tree.firstChild,
    tree.nextSibling,
    ...(tree.diff ? [tree.diff.leftTotal, tree.diff.rightTotal, tree.diff.leftSelf, tree.diff.rightSelf] : []),
    ...(tree.diff?.noise ? [tree.diff.noise.low, tree.diff.noise.high, tree.diff.noise.q] : []),
  ];
  return arrays.map((array) => array.buffer as ArrayBuffer);
}

self.addEventListener("message", (event: MessageEvent<WorkRequest>) => {
  const { id, kind, bytes } = event.data;
  try {
    const decoded = kind === "merge" ? decodeMerge(bytes) : decodeDiff(bytes);
    // As a single picture is drawn.
    if (kind === "merge") decoded.tree = largestFirst(decoded.tree);
    self.postMessage({ id, decoded }, { transfer: buffersOf(decoded.tree) });
  } catch (error) {
    self.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
  }
});
