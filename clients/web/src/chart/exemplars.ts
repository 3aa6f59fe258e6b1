// Single profiles on a line over time, as diamonds that lead to them.
import type uPlot from "uplot";
import type { TimelineExemplar } from "../api/timeline";

const HALF = 5;
const REACH = 12;
const APART = 48;
const MAX_MARKS = 12;

export interface Mark {
  x: number;
  y: number;
  exemplar: TimelineExemplar;
}

/** The largest, none so near to another that either cannot be hit. */
export function spread(exemplars: readonly TimelineExemplar[], xOf: (exemplar: TimelineExemplar) => number): TimelineExemplar[] {
  const kept: TimelineExemplar[] = [];
  [...exemplars]
    .sort((a, b) => b.value - a.value)
    .forEach((exemplar) => {
      if (kept.length < MAX_MARKS && kept.every((other) => Math.abs(xOf(other) - xOf(exemplar)) >= APART)) kept.push(exemplar);
    });
  return kept;
}

export function nearest(marks: readonly Mark[], x: number, y: number): Mark | undefined {
  return marks.find((mark) => Math.abs(mark.x - x) <= REACH && Math.abs(mark.y - y) <= REACH);
}

export function exemplarsPlugin(exemplars: readonly TimelineExemplar[], titleOf: (of: TimelineExemplar) => string, open: (of: TimelineExemplar) => void): uPlot.Plugin {
  let marks: Mark[] = [];

  const draw = (plot: uPlot) => {
    const xOf = (exemplar: TimelineExemplar) => plot.valToPos(plot.data[0][exemplar.index]!, "x");
    marks = spread(exemplars, xOf).map((exemplar) => ({
      x: xOf(exemplar),
      y: plot.valToPos((plot.data[1] as (number | null)[])[exemplar.index] ?? 0, "y"),
      exemplar,
    }));
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio || 1;
    const style = getComputedStyle(document.documentElement);
    ctx.save();
    ctx.fillStyle = style.getPropertyValue("--surface");
    ctx.strokeStyle = style.getPropertyValue("--text");
    ctx.lineWidth = ratio;
    for (const { x, y } of marks) {
      const [left, top, half] = [bbox.left + x * ratio, bbox.top + y * ratio, (HALF * ratio) / 2 + ratio];
      ctx.beginPath();
      ctx.moveTo(left, top - half);
      ctx.lineTo(left + half, top);
      ctx.lineTo(left, top + half);
      ctx.lineTo(left - half, top);
      ctx.closePath();
      ctx.fill();
      ctx.stroke();
    }
    ctx.restore();
  };

  const ready = (plot: uPlot) => {
    const hit = (event: MouseEvent) => nearest(marks, event.offsetX, event.offsetY);
    plot.over.addEventListener("mousemove", (event) => {
      const mark = hit(event);
      plot.over.style.cursor = mark ? "pointer" : "";
      plot.over.title = mark ? titleOf(mark.exemplar) : "";
    });
    plot.over.addEventListener("click", (event) => {
      const mark = hit(event);
      // The end of a drag is a click, too.
      if (mark && plot.select.width <= 4) open(mark.exemplar);
    });
  };

  return { hooks: { draw, ready } };
}
