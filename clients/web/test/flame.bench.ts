// What the flame graph costs: `npm run bench`. The budgets are those of docs/benchmarks.md. Node has no canvas, so that
// painting is measured up to its calls; tests/bench/page.py measures the page itself in a browser.
import { readFileSync } from "node:fs";
import { LIGHT } from "../src/flame/colours";
import { layoutTree } from "../src/flame/layout";
import { paint } from "../src/flame/paint";
import { Scene } from "../src/flame/scene";
import { searchTree } from "../src/flame/search";
import { decodeMerge, largestFirst, type FlameTree } from "../src/flame/tree";
import { answerOf, generator, randomTree } from "./flame-fixtures";

const WIDTH = 1600;
const ROWS = 40;

/** Takes every call and draws nothing. */
const nothing = () => {};
const context = {
  measureText: () => ({ width: 720 }),
  ...Object.fromEntries(
    ["setTransform", "fillRect", "fillText", "strokeRect", "save", "restore", "beginPath", "rect", "clip", "moveTo", "lineTo", "stroke", "setLineDash"]
      .map((name) => [name, nothing]),
  ),
} as unknown as CanvasRenderingContext2D;

function draw(tree: FlameTree, zoomNode: number): void {
  const scene = new Scene(tree, layoutTree(tree, zoomNode, WIDTH), LIGHT, "package", "nanoseconds", null, "total");
  const size = { width: WIDTH, height: 20 * ROWS, top: 0, rowHeight: 20, ratio: 1 };
  paint(context, scene, { ...size, scale: 1, offset: 0, outlinedName: -1, cursor: -1 });
}

/** Milliseconds of processor time of this thread, which other work of the machine does not lengthen. */
function clock(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

function measure(run: () => void): number {
  const begin = clock();
  run();
  return clock() - begin;
}

/** The mean of many runs: the clock has the grain of the scheduler, some milliseconds. */
function many(times: number, run: (i: number) => void): number {
  return measure(() => Array.from({ length: times }, (_, i) => run(i))) / times;
}

const lines: [string, string][] = [];
const say = (what: string, ...ms: number[]) => lines.push([what, ms.map((each) => each.toFixed(1)).join(" + ")]);

// Nothing is compiled yet, as when a page has just been opened: the first answer is the slowest.
const first = answerOf(randomTree(1, 100_000, 5000));
let tree: FlameTree | undefined;
const decoded = measure(() => (tree = decodeMerge(first).tree));
const sorted = measure(() => (tree = largestFirst(tree!)));
const drawn = measure(() => draw(tree!, 0));
say("100,000 nodes, cold: decode + sort + draw", decoded, sorted, drawn);

for (const n of [16_384, 100_000, 1_000_000]) {
  const plain = randomTree(2, n, Math.ceil(n / 20));
  const answer = answerOf(plain);
  say(`${n} nodes: decode`, many(9, () => decodeMerge(answer)));
  say(`${n} nodes: sort`, many(9, () => largestFirst(plain)));
  const shown = largestFirst(plain);
  const random = generator(3);
  const inner = Array.from({ length: 50 }, () => Math.floor(random() * n * 0.01));
  say(`${n} nodes: zoom frame`, many(50, (i) => draw(shown, inner[i]!)));
  say(`${n} nodes: search, some hits`, many(9, () => searchTree(shown, "function12")));
  say(`${n} nodes: search, all hit`, many(9, () => searchTree(shown, ".")));
}
console.log("| what | ms |\n|---|---|");
lines.forEach((line) => console.log(`| ${line.join(" | ")} |`));
