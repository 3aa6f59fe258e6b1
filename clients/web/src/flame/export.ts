// Files of what is seen: the zoomed part of the transformed tree. Names are escaped twice over: characters that are not
// seen are written out, and what is markup in the file's format is quoted.
import { formatShare, formatValue } from "../units";
import { css } from "./colours";
import { judgementOf } from "./diff";
import { CULLED } from "./layout";
import { visibleName } from "./names";
import { BEYOND_Q } from "./noise";
import { LARGEST_CANVAS, paint } from "./paint";
import { drawnWidth, TEXT_PADDING, type Scene } from "./scene";
import { ancestorsOf, nameOf, type FlameTree } from "./tree";

/** What the two sides of a diff are called. */
export interface Sides {
  baseline: string;
  comparison: string;
}

/** Nodes at and below `top`, parents first. */
function subtree(tree: FlameTree, top: number): number[] {
  const isInside = new Uint8Array(tree.n);
  isInside[top] = 1;
  const nodes = [top];
  for (let i = top + 1; i < tree.n; i++) {
    if (isInside[tree.parent[i]!]) {
      isInside[i] = 1;
      nodes.push(i);
    }
  }
  return nodes;
}

/** What a file of stack traces holds: a stack trace, root first, and the values of its last frame; of a diff both sides. */
interface StackTrace {
  frames: number[];
  values: number[];
}

export function stackTraces(tree: FlameTree, zoomNode: number): StackTrace[] {
  const sides = tree.diff ? [tree.diff.leftSelf, tree.diff.rightSelf] : [tree.self];
  return subtree(tree, zoomNode)
    .filter((node) => sides.some((self) => self[node]! > 0))
    .map((node) => ({
      frames: ancestorsOf(tree, node).slice(1).map((frame) => tree.name[frame]!),
      values: sides.map((self) => self[node]!),
    }));
}

/** What stands for a stack trace whose frames are all hidden, as in the server's files (server/format/text/collapsed.c). */
const NO_STACK = "[no stack]";

/** "root;...;leaf value" a line; of a diff "root;...;leaf before after". */
export function collapsedText(tree: FlameTree, zoomNode: number): string {
  const names = tree.names.map((name) => visibleName(name).replace(/;/g, "\\u{3b}"));
  return stackTraces(tree, zoomNode)
    .map(({ frames, values }) => `${frames.map((frame) => names[frame]).join(";") || NO_STACK} ${values.join(" ")}\n`)
    .join("");
}

/** speedscope's own format (speedscope.app/file-format-schema.json); of a diff both sides as profiles. */
export function speedscopeText(tree: FlameTree, zoomNode: number, unit: string, title: string, sides: Sides): string {
  const traces = stackTraces(tree, zoomNode);
  const profileOf = (side: number, name: string) => {
    const present = traces.filter(({ values }) => values[side]! > 0);
    const weights = present.map(({ values }) => values[side]!);
    return {
      type: "sampled",
      name: visibleName(name),
      unit: unit === "nanoseconds" || unit === "bytes" ? unit : "none",
      startValue: 0,
      endValue: weights.reduce((a, b) => a + b, 0),
      samples: present.map(({ frames }) => frames),
      weights,
    };
  };
  const profiles = tree.diff
    ? [profileOf(0, `${title}: ${sides.baseline}`), profileOf(1, `${title}: ${sides.comparison}`)]
    : [profileOf(0, title)];
  return JSON.stringify({
    $schema: "https://www.speedscope.app/file-format-schema.json",
    exporter: "hearth",
    name: visibleName(title),
    shared: { frames: tree.names.map((name) => ({ name: visibleName(name) })) },
    profiles,
  });
}

function markup(text: string): string {
  return visibleName(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** The width of a column at 12 px, rounded up: a file does not know which one its reader has. */
const SVG_ADVANCE = 7.25;

export function svgText(scene: Scene, width: number, rowHeight: number, title: string): string {
  const { layout, tree, theme, unit } = scene;
  const height = layout.rows * rowHeight;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${markup(title)}</title>`,
    `<defs><pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0" stroke="${css(theme.text)}" stroke-opacity="0.3"/></pattern></defs>`,
    `<rect width="${width}" height="${height}" fill="${css(theme.background)}"/>`,
    `<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" direction="ltr">`,
  ];
  for (let row = 0; row < layout.rows; row++) {
    for (let box = layout.rowStart[row]!; box < layout.rowStart[row + 1]!; box++) {
      parts.push(svgBox(scene, box, row * rowHeight, rowHeight - 1, tree, unit));
    }
  }
  parts.push("</g></svg>");
  return parts.join("\n");
}

function svgBox(scene: Scene, box: number, y: number, height: number, tree: FlameTree, unit: string): string {
  const { layout } = scene;
  const node = layout.node[box]!;
  const x = layout.x[box]!.toFixed(2);
  const width = drawnWidth(layout.width[box]!);
  const fill = scene.fill(box);
  const place = `x="${x}" y="${y}" width="${width.toFixed(2)}" height="${height}"`;
  const sum = layout.sum[box]!;
  const name = node === CULLED ? `(${layout.count[box]})` : nameOf(tree, node);
  const opacity = scene.isAncestor(box) ? ` fill-opacity="0.45"` : "";
  const pattern = scene.pattern(box);
  const dots = pattern === "dotted" ? ` stroke="${css(scene.textColour(fill))}" stroke-dasharray="2 2"` : "";
  const hatch = pattern === "hatched" ? `<rect ${place} fill="url(#hatched)"/>` : "";
  const text = scene.text(box, width, SVG_ADVANCE);
  const colour = scene.isAncestor(box) ? scene.theme.text : scene.textColour(fill);
  const label = text
    ? `<text x="${(layout.x[box]! + TEXT_PADDING).toFixed(2)}" y="${y + height / 2 + 4}" fill="${css(colour)}" xml:space="preserve">${markup(text.name + text.value)}</text>`
    : "";
  const hint = `<title>${markup(name)} · ${formatValue(sum, unit)} · ${formatShare(sum, tree.total[0]!)}</title>`;
  return `<g>${hint}<rect ${place} fill="${css(fill)}"${opacity}${dots}/>${hatch}${label}</g>`;
}

/** Steps from number to number: small where numbers that follow each other are near. */
function steps(numbers: readonly number[]): number[] {
  return numbers.map((number, i) => number - (i > 0 ? numbers[i - 1]! : 0));
}

/**
 * The page of clients/viewer, `page`, with all of the tree in it, which opens as it is seen here. Its README describes the
 * members.
 */
export function htmlText(
  page: string,
  tree: FlameTree,
  zoomNode: number,
  search: string,
  unit: string,
  title: string,
  type: string,
  sides: Sides,
): string {
  const { diff, n } = tree;
  const noise = judgementOf(tree);
  const numbers = Array.from({ length: n }, (_, i) => i);
  const profile = {
    title: visibleName(title),
    type: visibleName(type),
    unit,
    zoom: zoomNode,
    search: visibleName(search),
    names: tree.names.map(visibleName),
    name: Array.from(tree.name),
    parent: steps(Array.from(tree.parent, (parent) => Math.max(0, parent))),
    self: (diff ? [diff.leftSelf, diff.rightSelf] : [tree.self]).map((side) => Array.from(side)),
    ...(diff && { sides: [sides.baseline, sides.comparison] }),
    ...(noise && { changed: steps(numbers.filter((i) => noise.q[i]! <= BEYOND_Q)) }),
  };
  return page.replace('id="profile">', (place) => place + JSON.stringify(profile).replace(/</g, "\\u003c"));
}

export function pngBlob(scene: Scene, width: number, rowHeight: number): Promise<Blob> {
  const height = scene.layout.rows * rowHeight;
  const ratio = Math.min(2, LARGEST_CANVAS / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.floor(width * ratio);
  canvas.height = Math.floor(height * ratio);
  const context = canvas.getContext("2d");
  if (!context) {
    return Promise.reject(new Error("this browser has no canvas"));
  }
  paint(context, scene, {
    width,
    height,
    top: 0,
    rowHeight,
    ratio,
    scale: 1,
    offset: 0,
    outlinedName: -1,
    cursor: -1,
  });
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))), "image/png");
  });
}
