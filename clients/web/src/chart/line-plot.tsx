// Lines over time on a canvas with two axes, and what is seen at the cursor above it. The canvas is drawn again when its
// content changes; a move of the cursor touches a few elements only.
import { useEffect, useRef } from "preact/hooks";
import { language, theme } from "../app/settings";
import { fitCanvas } from "../flame/stage";
import { bandPath, linePath, toX, toY, traceOf, valueTicks, type Frame, type Values } from "./line-path";
import { tickTexts, timeTicks } from "./time-axis";

interface PlotLine {
  name: string;
  // For CSS; a name of a token is a colour by theme.
  colour: string;
  values: Values;
  // If a value stands for several, the smallest of them.
  lows?: Values;
}

// The room of the axes around the area of the lines.
interface Inset {
  top: number;
  right: number;
  bottom: number;
  left: number;
}

const TICK_WIDTH = 80;
const TICK_HEIGHT = 28;
const HALF_TEXT = 20;
const ROW = 14;
const MOST_SAID = 9;
const HUES = [248, 45, 155, 320, 95, 200, 20, 280];

// Far enough apart in hue, and dark enough on both backgrounds, to be told from each other.
export function lineColour(i: number): string {
  return `oklch(0.62 0.14 ${HUES[i % HUES.length]})`;
}

export function frameOf(width: number, height: number, inset: Inset, of: Pick<Frame, "fromMs" | "toMs" | "most">): Frame {
  return { ...of, width: Math.max(1, width - inset.left - inset.right), height: height - inset.top - inset.bottom };
}

interface Props {
  frame: Frame;
  inset: Inset;
  timesMs: readonly number[];
  lines: readonly PlotLine[];
  unit?: string;
  // Whether the area below the line is tinted.
  isArea?: boolean;
  valueText(value: number): string;
}

function drawAxes(context: CanvasRenderingContext2D, { frame, inset, unit, valueText }: Props): void {
  const style = getComputedStyle(document.documentElement);
  const { width, height, fromMs, toMs, most } = frame;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = style.getPropertyValue("--muted");
  context.strokeStyle = style.getPropertyValue("--hairline");
  context.lineWidth = 1;
  context.beginPath();

  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of valueTicks(most, height / TICK_HEIGHT, unit)) {
    const y = Math.round(toY(frame, value)) + 0.5;
    context.moveTo(0, y);
    context.lineTo(width, y);
    // The unit of 0 would be another one than that of the others.
    context.fillText(value === 0 ? "0" : valueText(value), -8, y);
  }

  context.textAlign = "center";
  context.textBaseline = "top";
  const ticks = timeTicks(fromMs, toMs, width / TICK_WIDTH);
  const texts = tickTexts(ticks, language.value);
  ticks.forEach((tick, i) => {
    const x = Math.round(toX(frame, tick)) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, height);
    if (x + HALF_TEXT <= width + inset.right) {
      texts[i]!.split("\n").forEach((text, row) => context.fillText(text, x, height + 6 + row * ROW));
    }
  });
  context.stroke();
}

function drawLines(context: CanvasRenderingContext2D, { frame, timesMs, lines, isArea }: Props): void {
  const style = getComputedStyle(document.documentElement);
  const yOf = (value: number) => toY(frame, value);
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  // The first line is the most important one.
  for (const { colour, values, lows } of [...lines].reverse()) {
    const trace = traceOf(frame, timesMs, values, lows);
    const floor = isArea ? trace.xs.map(() => 0) : trace.lows;
    context.strokeStyle = context.fillStyle = colour.startsWith("--") ? style.getPropertyValue(colour) : colour;
    if (floor) {
      context.globalAlpha = 0.18;
      context.fill(new Path2D(bandPath(trace.xs, trace.highs, floor, yOf)));
      context.globalAlpha = 1;
    }
    context.stroke(new Path2D(linePath(trace.xs, trace.highs, yOf)));
  }
}

export function LinePlot(props: Props) {
  const { frame, inset, timesMs, lines } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current!.getContext("2d")!;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [frame.width + inset.left + inset.right, frame.height + inset.top + inset.bottom];
    fitCanvas(canvas.current!, width, height, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.setTransform(ratio, 0, 0, ratio, inset.left * ratio, inset.top * ratio);
    drawAxes(context, props);
    drawLines(context, props);
  }, [frame.width, frame.fromMs, frame.toMs, frame.most, timesMs, lines, theme.value, language.value]);
  return <canvas class="line-plot" ref={canvas} aria-hidden="true" />;
}

interface CursorProps extends Omit<Props, "inset" | "unit" | "isArea"> {
  at: number;
  // What is said besides.
  note?: string;
}

// A line through all values of one time, and what they are, the largest first.
export function Cursor({ frame, timesMs, lines, valueText, at, note }: CursorProps) {
  const x = toX(frame, timesMs[at]!);
  const isRight = x > frame.width / 2;
  const stepMs = timesMs.length > 1 ? timesMs[1]! - timesMs[0]! : Infinity;
  const format = new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: stepMs < 60_000 ? "medium" : "short", hourCycle: "h23" });
  const present = lines.flatMap(({ name, colour, values }) => {
    const value = values[at];
    return value === null || value === undefined ? [] : [{ name, colour: colour.startsWith("--") ? `var(${colour})` : colour, value }];
  });
  const said = [...present].sort((a, b) => b.value - a.value).slice(0, MOST_SAID);
  return (
    <>
      <i class="crosshair" style={{ left: `${x}px` }} />
      {present.map(({ name, colour, value }) => (
        <i class="crosshair-dot" key={name} style={{ left: `${x}px`, top: `${toY(frame, value)}px`, background: colour }} />
      ))}
      <output class="readout" aria-live="polite" style={isRight ? { right: `${frame.width - x + 8}px` } : { left: `${x + 8}px` }}>
        <span class="muted">{format.format(timesMs[at]!)}</span>
        {said.map(({ name, colour, value }) => (
          <span key={name}>
            {lines.length > 1 && <i class="swatch" style={{ background: colour }} />}
            {lines.length > 1 && <span class="named">{name}</span>}
            <b class="number">{valueText(value)}</b>
          </span>
        ))}
        {present.length === 0 && <span>—</span>}
        {present.length > said.length && <span class="muted">+{present.length - said.length}</span>}
        {note && <span class="note-below">{note}</span>}
      </output>
    </>
  );
}
