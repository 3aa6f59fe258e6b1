// Paints the visible rows of a scene on a canvas.
import { css, type Rgb } from "./colours";
import { CULLED } from "./layout";
import { drawnWidth, TEXT_PADDING, type Scene } from "./scene";

const FONT = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/** Browsers refuse larger canvases. */
export const LARGEST_CANVAS = 16384;

/** How ancestors of the zoomed frame step back. */
const ANCESTOR_ALPHA = 0.45;

export interface Frame {
  width: number;
  height: number;
  /** Pixels of the picture above the first visible one. */
  top: number;
  rowHeight: number;
  /** Device pixels per pixel. */
  ratio: number;
  /** Horizontal stretch while a zoom runs: x becomes x * scale + offset. */
  scale: number;
  offset: number;
  /** Name index of the function under the pointer or cursor, or -1. */
  outlinedName: number;
  /** The node with the keyboard's cursor, or -1. */
  cursor: number;
}

let advanceOfFont = 0;

/** The width of a column, measured once. */
function columnWidth(context: CanvasRenderingContext2D): number {
  if (advanceOfFont === 0) {
    advanceOfFont = context.measureText("0".repeat(100)).width / 100;
  }
  return advanceOfFont;
}

export function paint(context: CanvasRenderingContext2D, scene: Scene, frame: Frame): void {
  const { layout, theme } = scene;
  context.setTransform(frame.ratio, 0, 0, frame.ratio, 0, 0);
  context.globalAlpha = 1;
  context.fillStyle = css(theme.background);
  context.fillRect(0, 0, frame.width, frame.height);
  context.font = FONT;
  context.textBaseline = "middle";
  // Names in Arabic or Hebrew must not turn the whole label around.
  context.direction = "ltr";

  const first = Math.max(0, Math.floor(frame.top / frame.rowHeight));
  const last = Math.min(layout.rows, Math.ceil((frame.top + frame.height) / frame.rowHeight));
  const zoomed = Math.min(last, Math.max(first, layout.zoomRow));
  paintRows(context, scene, frame, first, zoomed, ANCESTOR_ALPHA);
  paintRows(context, scene, frame, zoomed, last, 1);
  for (let row = first; row < last; row++) {
    paintOutlines(context, scene, frame, row);
  }
}

/** Where a box is in the frame; ancestors fill the width whatever the stretch. */
function place(scene: Scene, frame: Frame, box: number): { x: number; width: number } {
  const { layout } = scene;
  if (scene.isAncestor(box)) {
    return { x: 0, width: frame.width };
  }
  // Edges lie on device pixels, so that a plateau ends sharply and a row of narrow boxes does not fade.
  const snap = (x: number) => Math.round(Math.min(frame.width, Math.max(0, x)) * frame.ratio) / frame.ratio;
  const x = snap(layout.x[box]! * frame.scale + frame.offset);
  const end = snap((layout.x[box]! + layout.width[box]!) * frame.scale + frame.offset);
  return { x, width: end - x };
}

/** Pixels from which a box has a pattern. */
const PATTERN_WIDTH = 3;

interface Placed {
  box: number;
  x: number;
  y: number;
  width: number;
}

/** Adds the row's boxes to the rectangles of their colour, each as x, y and width, and to `wide` those with more in them. */
function placeRow(scene: Scene, frame: Frame, row: number, rectangles: Map<Rgb, number[]>, wide: Placed[]): void {
  const { layout } = scene;
  const y = row * frame.rowHeight - frame.top;
  for (let box = layout.rowStart[row]!; box < layout.rowStart[row + 1]!; box++) {
    const { x, width } = place(scene, frame, box);
    if (width <= 0) {
      continue;
    }
    const drawn = drawnWidth(width);
    if (drawn >= PATTERN_WIDTH) {
      wide.push({ box, x, y, width: drawn });
    }
    const fill = scene.fill(box);
    const sameFill = rectangles.get(fill);
    if (sameFill) {
      sameFill.push(x, y, drawn);
    } else {
      rectangles.set(fill, [x, y, drawn]);
    }
  }
}

function hatch(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  colour: Rgb,
): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.globalAlpha *= 0.3;
  context.strokeStyle = css(colour);
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - height; at < x + width; at += 6) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

function dot(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  colour: Rgb,
): void {
  context.save();
  context.strokeStyle = css(colour);
  context.setLineDash([2, 2]);
  context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  context.restore();
}

function paintPattern(
  context: CanvasRenderingContext2D,
  scene: Scene,
  frame: Frame,
  { box, x, y, width }: Placed,
): void {
  const pattern = scene.pattern(box);
  if (pattern === "hatched") {
    hatch(context, x, y, width, frame.rowHeight - 1, scene.textColour(scene.fill(box)));
  } else if (pattern === "dotted") {
    dot(context, x, y, width, frame.rowHeight - 1, scene.textColour(scene.fill(box)));
  }
}

function paintText(
  context: CanvasRenderingContext2D,
  scene: Scene,
  frame: Frame,
  { box, x, y, width }: Placed,
  advance: number,
): void {
  const text = scene.text(box, width, advance);
  if (!text) {
    return;
  }
  context.fillStyle = css(scene.isAncestor(box) ? scene.theme.text : scene.textColour(scene.fill(box)));
  const middle = y + (frame.rowHeight - 1) / 2 + 0.5;
  context.fillText(text.name, x + TEXT_PADDING, middle);
  if (text.value !== "") {
    context.globalAlpha = 0.8;
    context.fillText(text.value, x + TEXT_PADDING + text.columns * advance, middle);
    context.globalAlpha = 1;
  }
}

/** Rows `from` up to `to`, whose boxes have the opacity `alpha`. */
function paintRows(
  context: CanvasRenderingContext2D,
  scene: Scene,
  frame: Frame,
  from: number,
  to: number,
  alpha: number,
): void {
  const rectangles = new Map<Rgb, number[]>();
  const wide: Placed[] = [];
  for (let row = from; row < to; row++) {
    placeRow(scene, frame, row, rectangles, wide);
  }

  // By colour: a canvas takes three times as long for a new fill style as for a rectangle.
  context.globalAlpha = alpha;
  for (const [fill, places] of rectangles) {
    context.fillStyle = css(fill);
    for (let i = 0; i < places.length; i += 3) {
      context.fillRect(places[i]!, places[i + 1]!, places[i + 2]!, frame.rowHeight - 1);
    }
  }
  for (const placed of wide) {
    paintPattern(context, scene, frame, placed);
  }

  // Faded text would be too faint to read: only the box steps back.
  context.globalAlpha = 1;
  const advance = columnWidth(context);
  for (const placed of wide) {
    paintText(context, scene, frame, placed, advance);
  }
}

function paintOutlines(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, row: number): void {
  const { layout, tree, theme } = scene;
  const y = row * frame.rowHeight - frame.top;
  for (let box = layout.rowStart[row]!; box < layout.rowStart[row + 1]!; box++) {
    const node = layout.node[box]!;
    const isCursor = node >= 0 && node === frame.cursor;
    const isSame = node > 0 && tree.name[node] === frame.outlinedName;
    if (!isCursor && !isSame) {
      continue;
    }
    const { x, width } = place(scene, frame, box);
    const line = isCursor ? 2 : 1;
    context.strokeStyle = css(isCursor ? theme.accent : theme.text);
    context.lineWidth = line;
    if (width > line) {
      context.strokeRect(x + line / 2, y + line / 2, Math.max(width - 1 - line, 0.5), frame.rowHeight - 1 - line);
    }
  }
}

/** Ticks beside the picture at the rows that have matches, so that those out of view are seen. */
export function paintRail(
  context: CanvasRenderingContext2D,
  scene: Scene,
  width: number,
  height: number,
  ratio: number,
): void {
  const { layout, matches, theme, tree } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  if (!matches) {
    return;
  }
  context.fillStyle = css(theme.match);
  for (let row = 0; row < layout.rows; row++) {
    for (let box = layout.rowStart[row]!; box < layout.rowStart[row + 1]!; box++) {
      const node = layout.node[box]!;
      if (node !== CULLED && node > 0 && matches.names[tree.name[node]!]) {
        context.fillRect(1, Math.floor((row / layout.rows) * height), width - 2, 2);
        break;
      }
    }
  }
}
