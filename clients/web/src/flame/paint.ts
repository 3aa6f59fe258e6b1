// Paints the visible rows of a scene on a canvas.
import { colourCount, colourOf, css, type Rgb } from "./colours";
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
  const hasOutlines = frame.cursor >= 0 || frame.outlinedName >= 0;
  for (const [from, to, alpha] of [[first, zoomed, ANCESTOR_ALPHA], [zoomed, last, 1]] as const) {
    paintRows(context, scene, frame, from, to, alpha);
    if (hasOutlines) paintOutlines(context, scene, frame);
  }
}

/** Pixels from which a box has a pattern. */
const PATTERN_WIDTH = 3;

/**
 * The boxes of a picture, where they are drawn: kept from one frame to the next, because a frame of some thousand objects
 * leaves them to be collected in the next one. `next` chains those of one colour, from `first` of its number on.
 */
class PlacedBoxes {
  n = 0;
  box = new Int32Array(8192);
  x = new Float64Array(8192);
  y = new Float64Array(8192);
  width = new Float64Array(8192);
  next = new Int32Array(8192);
  first = new Int32Array(256);
  /** The wide ones, which have patterns and texts. */
  wide = new Int32Array(8192);
  wideCount = 0;

  clear(): void {
    this.n = 0;
    this.wideCount = 0;
    this.first.fill(-1);
  }

  /** Room for `more` boxes. */
  reserve(more: number): void {
    if (this.n + more <= this.box.length) {
      return;
    }
    const size = Math.max(2 * this.box.length, this.n + more);
    const copy = <T extends { set(from: T): void }>(to: T, from: T): T => (to.set(from), to);
    this.box = copy(new Int32Array(size), this.box);
    this.x = copy(new Float64Array(size), this.x);
    this.y = copy(new Float64Array(size), this.y);
    this.width = copy(new Float64Array(size), this.width);
    this.next = copy(new Int32Array(size), this.next);
    this.wide = copy(new Int32Array(size), this.wide);
  }

  chain(at: number, colour: number): void {
    if (colour >= this.first.length) {
      const first = new Int32Array(2 * colourCount()).fill(-1);
      first.set(this.first);
      this.first = first;
    }
    this.next[at] = this.first[colour]!;
    this.first[colour] = at;
  }
}

const placed = new PlacedBoxes();

/** Adds the row's boxes; ancestors of the zoomed frame fill the width whatever the stretch. */
function placeRow(scene: Scene, frame: Frame, row: number): void {
  const { layout } = scene;
  const { ratio, scale, offset } = frame;
  const y = row * frame.rowHeight - frame.top;
  const isAncestor = row < layout.zoomRow;
  const end = layout.rowStart[row + 1]!;
  placed.reserve(end - layout.rowStart[row]!);
  for (let box = layout.rowStart[row]!; box < end; box++) {
    // Edges lie on device pixels, so that a plateau ends sharply and a row of narrow boxes does not fade.
    const left = isAncestor ? 0 : layout.x[box]! * scale + offset;
    const right = isAncestor ? frame.width : left + layout.width[box]! * scale;
    const x = left > 0 ? Math.round(Math.min(left, frame.width) * ratio) / ratio : 0;
    const width = right > 0 ? Math.round(Math.min(right, frame.width) * ratio) / ratio - x : 0;
    if (width <= 0) {
      continue;
    }
    const at = placed.n++;
    const drawn = drawnWidth(width);
    placed.box[at] = box;
    placed.x[at] = x;
    placed.y[at] = y;
    placed.width[at] = drawn;
    placed.chain(at, scene.fillNumber(box));
    if (drawn >= PATTERN_WIDTH) {
      placed.wide[placed.wideCount++] = at;
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

function paintPattern(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, at: number): void {
  const box = placed.box[at]!;
  const pattern = scene.pattern(box);
  if (pattern === "none") {
    return;
  }
  const draw = pattern === "hatched" ? hatch : dot;
  const colour = scene.textColour(scene.fill(box));
  draw(context, placed.x[at]!, placed.y[at]!, placed.width[at]!, frame.rowHeight - 1, colour);
}

function paintText(context: CanvasRenderingContext2D, scene: Scene, frame: Frame, at: number, advance: number): void {
  const box = placed.box[at]!;
  const text = scene.text(box, placed.width[at]!, advance);
  if (!text) {
    return;
  }
  const x = placed.x[at]! + TEXT_PADDING;
  const middle = placed.y[at]! + (frame.rowHeight - 1) / 2 + 0.5;
  context.fillStyle = css(scene.isAncestor(box) ? scene.theme.text : scene.textColour(scene.fill(box)));
  context.fillText(text.name, x, middle);
  if (text.value !== "") {
    context.globalAlpha = 0.8;
    context.fillText(text.value, x + text.columns * advance, middle);
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
  placed.clear();
  for (let row = from; row < to; row++) {
    placeRow(scene, frame, row);
  }

  // By colour: a canvas takes three times as long for a new fill style as for a rectangle.
  context.globalAlpha = alpha;
  const { x, y, width, next, first, wide } = placed;
  const height = frame.rowHeight - 1;
  for (let colour = 1; colour < Math.min(first.length, colourCount()); colour++) {
    if (first[colour]! >= 0) context.fillStyle = css(colourOf(colour));
    for (let at = first[colour]!; at >= 0; at = next[at]!) {
      context.fillRect(x[at]!, y[at]!, width[at]!, height);
    }
  }
  for (let i = 0; i < placed.wideCount; i++) {
    paintPattern(context, scene, frame, wide[i]!);
  }

  // Faded text would be too faint to read: only the box steps back.
  context.globalAlpha = 1;
  const advance = columnWidth(context);
  for (let i = 0; i < placed.wideCount; i++) {
    paintText(context, scene, frame, wide[i]!, advance);
  }
}

/** Around the cursor's frame and those of the function under the pointer, among the boxes that were placed last. */
function paintOutlines(context: CanvasRenderingContext2D, scene: Scene, frame: Frame): void {
  const { layout, tree, theme } = scene;
  for (let at = 0; at < placed.n; at++) {
    const node = layout.node[placed.box[at]!]!;
    const isCursor = node >= 0 && node === frame.cursor;
    const isSame = node > 0 && tree.name[node] === frame.outlinedName;
    if (!isCursor && !isSame) {
      continue;
    }
    const x = placed.x[at]!;
    const width = placed.width[at]!;
    const line = isCursor ? 2 : 1;
    context.strokeStyle = css(isCursor ? theme.accent : theme.text);
    context.lineWidth = line;
    if (width >= line) {
      context.strokeRect(x + line / 2, placed.y[at]! + line / 2, Math.max(width - line, 0.5), frame.rowHeight - 1 - line);
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
