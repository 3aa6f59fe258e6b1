// The heatmap on a canvas, with a cursor for pointer and keys. What the cursor is at is said in one line above it.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Cell, Heat } from "../api/heatmap";
import { fitCanvas } from "../flame/stage";
import { formatCount, formatValue } from "../units";
import { colourIndex, shadeOf, SHADES, shadesOf } from "./heatmap";
import "./heatmap.css";
import { tickTexts, timeTicks } from "./time-axis";
import { useWidth } from "./use-width";

const ROW = 18;
const LEAST_HEIGHT = 84;
const LEFT = 76;
const BELOW = 36;
const TICK_WIDTH = 90;
const DRAG_PX = 5;

interface Props {
  heat: Heat;
  unit: string;
  theme: string;
  label: string;
  hint: string;
  chosen: Cell | null;
  sentence(cell: Cell): string;
  onChoose(cell: Cell | null): void;
  onRange(fromMs: number, toMs: number): void;
}

interface Place {
  width: number;
  height: number;
  column: number;
  row: number;
}

function placeOf(heat: Heat, width: number): Place {
  const rows = heat.edges.length - 1;
  const height = Math.max(LEAST_HEIGHT, rows * ROW);
  return { width, height, column: (width - LEFT) / heat.endsMs.length, row: height / rows };
}

function drawAxes(context: CanvasRenderingContext2D, heat: Heat, place: Place, unit: string): void {
  const style = getComputedStyle(document.documentElement);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = style.getPropertyValue("--muted");
  context.strokeStyle = style.getPropertyValue("--hairline");
  context.lineWidth = 1;
  const rows = heat.edges.length - 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (let edge = 0; edge <= rows; edge += rows > 4 ? 5 : 1) {
    const y = place.height - edge * place.row;
    context.fillText(formatValue(heat.edges[edge]!, unit), LEFT - 8, Math.min(place.height - 6, Math.max(6, y)));
    line(context, LEFT, y, place.width, y);
  }

  const from = heat.endsMs[0]! - heat.stepMs;
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  const ticks = timeTicks(from, heat.endsMs.at(-1)!, (place.width - LEFT) / TICK_WIDTH);
  const xOf = (at: number) => LEFT + ((at - from) / heat.stepMs) * place.column;
  ticks.forEach((at) => line(context, xOf(at), 0, xOf(at), place.height));
  // The first time that has room has the date.
  const named = ticks.filter((at) => xOf(at) > LEFT + 20 && xOf(at) < place.width - 20);
  tickTexts(named, document.documentElement.lang).forEach((lines, i) => {
    lines.split("\n").forEach((text, row) => context.fillText(text, xOf(named[i]!), place.height + 14 + 14 * row));
  });
}

function line(context: CanvasRenderingContext2D, x: number, y: number, toX: number, toY: number): void {
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, Math.round(y) + 0.5);
  context.lineTo(Math.round(toX) + 0.5, Math.round(toY) + 0.5);
  context.stroke();
}

function drawCells(context: CanvasRenderingContext2D, heat: Heat, place: Place): void {
  const style = getComputedStyle(document.documentElement);
  const colours = Array.from({ length: SHADES }, (_, i) => style.getPropertyValue(`--heat-${i + 1}`));
  const bounds = shadesOf(heat.most);
  const rows = heat.edges.length - 1;
  const gap = place.column >= 4 ? 1 : 0;
  for (let column = 0; column < heat.endsMs.length; column++) {
    // Whole pixels, so that neighbours neither blur nor overlap.
    const x = Math.round(LEFT + column * place.column);
    const width = Math.max(1, Math.round(LEFT + (column + 1) * place.column) - x - gap);
    for (let row = 0; row < rows; row++) {
      const count = heat.counts[column * rows + row]!;
      if (count > 0) {
        const y = Math.round(place.height - (row + 1) * place.row);
        context.fillStyle = colours[colourIndex(shadeOf(bounds, count), bounds.length)]!;
        context.fillRect(x, y, width, Math.round(place.height - row * place.row) - y - 1);
      }
    }
  }
}

function drawFrame(context: CanvasRenderingContext2D, place: Place, { column, row }: Cell, colour: string, width: number): void {
  context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue(colour);
  context.lineWidth = width;
  const half = width / 2;
  const x = LEFT + column * place.column - half;
  context.strokeRect(x, place.height - (row + 1) * place.row - half, place.column + width - 1, place.row + width - 1);
}

export function HeatmapCanvas(props: Props) {
  const { heat, unit, theme, chosen } = props;
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState<{ heat: Heat; cell: Cell } | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const rows = heat.edges.length - 1;
  const columns = heat.endsMs.length;
  const place = placeOf(heat, width);
  // A cell of the answer before may not exist in this one.
  const cursor = pointed?.heat === heat ? pointed.cell : null;
  const setCursor = (cell: Cell | null) => setPointed(cell && { heat, cell });

  useEffect(() => {
    const context = canvas.current!.getContext("2d");
    if (!context || width === 0) {
      return;
    }
    const ratio = devicePixelRatio || 1;
    fitCanvas(canvas.current!, width, place.height + BELOW, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, place.height + BELOW);
    drawAxes(context, heat, place, unit);
    drawCells(context, heat, place);
    if (chosen) drawFrame(context, place, chosen, "--ember", 2);
    if (cursor) drawFrame(context, place, cursor, "--text", 1);
  }, [heat, width, theme, unit, props.label, chosen?.column, chosen?.row, cursor?.column, cursor?.row]);

  const pointOf = (event: MouseEvent) => {
    const area = box.current!.getBoundingClientRect();
    return { x: event.clientX - area.left, y: event.clientY - area.top };
  };
  const cellOf = (event: MouseEvent): Cell | null => {
    const { x, y } = pointOf(event);
    const cell = { column: Math.floor((x - LEFT) / place.column), row: Math.floor((place.height - y) / place.row) };
    return cell.column >= 0 && cell.column < columns && cell.row >= 0 && cell.row < rows ? cell : null;
  };
  const timeAt = (x: number) => heat.endsMs[0]! - heat.stepMs + ((Math.max(LEFT, Math.min(width, x)) - LEFT) / place.column) * heat.stepMs;
  const isDragged = drag !== null && Math.abs(drag.to - drag.from) > DRAG_PX;

  const release = (event: PointerEvent) => {
    setDrag(null);
    if (isDragged) {
      const [from, to] = [drag.from, drag.to].sort((a, b) => a - b);
      props.onRange(Math.floor(timeAt(from!)), Math.ceil(timeAt(to!)));
    } else if (drag) {
      props.onChoose(cellOf(event));
    }
  };
  const pressKey = (event: KeyboardEvent) => {
    const fullest = heat.counts.indexOf(heat.most);
    const at = cursor ?? chosen ?? { column: Math.floor(fullest / rows), row: fullest % rows };
    const moved = cursor === null ? at : moveCell(at, event.key, columns, rows);
    if (event.key === "Enter") {
      props.onChoose(at);
    } else if (event.key === "Escape") {
      setCursor(null);
      if (chosen) props.onChoose(null);
    } else if (/^(Arrow|Home$|End$)/.test(event.key) && !event.ctrlKey && !event.altKey && !event.metaKey) {
      setCursor(moved);
    } else {
      return;
    }
    event.preventDefault();
  };

  const said = cursor ?? chosen;
  return (
    <div class="heatmap">
      <p class="heatmap-said" aria-live="polite">
        {said ? props.sentence(said) : <span class="muted">{props.hint}</span>}
      </p>
      <div
        ref={box}
        class="heatmap-box"
        role="application"
        tabIndex={0}
        aria-label={props.label}
        onKeyDown={pressKey}
        onPointerDown={(event) => {
          if (event.button === 0 && pointOf(event).y < place.height) {
            setDrag({ from: pointOf(event).x, to: pointOf(event).x });
            if (event.pointerType === "mouse") box.current!.setPointerCapture(event.pointerId);
          }
        }}
        onPointerMove={(event) => {
          if (drag) setDrag({ ...drag, to: pointOf(event).x });
          const cell = cellOf(event);
          if (cell?.column !== cursor?.column || cell?.row !== cursor?.row) setCursor(cell);
        }}
        onPointerUp={release}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => drag === null && setCursor(null)}
      >
        <canvas ref={canvas} aria-hidden="true" />
        {isDragged && (
          <div class="heatmap-drag" style={{ left: `${Math.min(drag.from, drag.to)}px`, width: `${Math.abs(drag.to - drag.from)}px`, height: `${place.height}px` }} />
        )}
      </div>
    </div>
  );
}

function moveCell({ column, row }: Cell, key: string, columns: number, rows: number): Cell {
  const within = (at: number, n: number) => Math.max(0, Math.min(n - 1, at));
  switch (key) {
    case "ArrowLeft":
      return { column: within(column - 1, columns), row };
    case "ArrowRight":
      return { column: within(column + 1, columns), row };
    case "ArrowUp":
      return { column, row: within(row + 1, rows) };
    case "ArrowDown":
      return { column, row: within(row - 1, rows) };
    case "Home":
      return { column: 0, row };
    case "End":
      return { column: columns - 1, row };
    default:
      return { column, row };
  }
}

export function HeatmapLegend({ most, what }: { most: number; what: string }) {
  const bounds = shadesOf(most);
  return (
    <ul class="lines heatmap-legend">
      {bounds.map((least, i) => {
        const largest = i + 1 < bounds.length ? bounds[i + 1]! - 1 : most;
        return (
          <li key={least}>
            <svg width="14" height="10" aria-hidden="true">
              <rect width="14" height="10" class={`heat-${colourIndex(i, bounds.length) + 1}`} />
            </svg>{" "}
            {largest > least ? `${formatCount(least)}–${formatCount(largest)}` : formatCount(least)}
          </li>
        );
      })}
      <li class="muted">{what}</li>
    </ul>
  );
}
