// A metric over time with a threshold that is dragged, or moved by arrow keys. Marks at the top say when it was reached.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Maxima } from "../pages/directing/monitor-lines";
import type { Span } from "../time";
import { lineColour, lonely } from "./timeline-chart";

const HEIGHT = 220;
const TOP = 16;
const AXIS = 36;
const LEFT = 64;
// There are as many colours as this; further lines are grey.
export const COLOURED = 8;
const PAGE = 10;

interface Props {
  maxima: Maxima;
  span: Span;
  threshold: number;
  largest: number;
  // Times at which the rule would have started profiling.
  firedMs: number[];
  // Times at which a policy did start it.
  startedMs: number[];
  theme: string;
  label: string;
  valueText(value: number): string;
  onMove(threshold: number): void;
  onDone(threshold: number): void;
}

// Returns the largest value of the axis, which leaves room above the lines and the threshold.
function scaleTop(maxima: Maxima, threshold: number): number {
  return Math.max(1, (maxima.lines[0]?.peak ?? 0) * 1.1, threshold * 1.25);
}

function useLines({ maxima, span, theme, valueText }: Props, top: number) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const topNow = useRef(top);
  topNow.current = top;
  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const muted = style.getPropertyValue("--muted");
    const hairline = style.getPropertyValue("--hairline");
    const axis = { stroke: muted, grid: { stroke: hairline, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const made = new uPlot(
      {
        width: box.current!.clientWidth,
        height: HEIGHT,
        padding: [TOP, 0, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { range: [span.startMs / 1000, span.endMs / 1000] }, y: { range: () => [0, topNow.current] } },
        axes: [
          { ...axis, size: AXIS },
          { ...axis, size: LEFT, values: (_, ticks) => ticks.map(valueText) },
        ],
        series: [
          {},
          ...maxima.lines.map((_, i) => ({
            stroke: i < COLOURED ? lineColour(i) : hairline,
            width: 1.5,
            points: { show: true, size: 4, filter: (u: uPlot, of: number) => lonely(u.data[of] as (number | null)[]) },
          })),
        ],
      },
      [maxima.timesMs.map((ms) => ms / 1000), ...maxima.lines.map(({ values }) => values)],
      box.current!,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: box.current!.clientWidth, height: HEIGHT }));
    resized.observe(box.current!);
    return () => {
      plot.current = null;
      resized.disconnect();
      made.destroy();
    };
  }, [maxima, theme]);
  useEffect(() => plot.current?.setData(plot.current.data), [top]);
  return box;
}

export function ThresholdChart(props: Props) {
  const { maxima, span, threshold, largest, firedMs, startedMs, label, valueText, onMove, onDone } = props;
  // The axis does not change while the threshold is held, or the threshold would move away below the pointer.
  const [heldTop, setHeldTop] = useState<number>();
  const top = heldTop ?? scaleTop(maxima, threshold);
  const lines = useLines(props, top);
  const area = useRef<HTMLDivElement>(null);

  const within = (value: number) => Math.min(largest, Math.max(1, value));
  const valueAt = (clientY: number) => {
    const { top: above, height } = area.current!.getBoundingClientRect();
    const share = 1 - (clientY - above) / height;
    return within(Math.round(Math.min(1, share) * top));
  };
  const onKey = (event: KeyboardEvent) => {
    const step = Math.max(1, Math.round(top / 100));
    const moves: Record<string, number> = {
      ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: step * PAGE, PageDown: -step * PAGE,
    };
    if (moves[event.key] !== undefined) {
      event.preventDefault();
      onMove(within(threshold + moves[event.key]));
    }
  };
  const marks = (name: string, times: number[]) =>
    times.map((ms) => <i class={name} key={name + ms} style={{ left: `${(100 * (ms - span.startMs)) / (span.endMs - span.startMs)}%` }} />);
  const share = 100 * (1 - Math.min(threshold, top) / top);
  return (
    <div class="threshold-chart">
      <div ref={lines} aria-hidden="true" />
      <div class="threshold-area" ref={area}>
        {marks("mark-fired", firedMs)}
        {marks("mark-started", startedMs)}
        <div
          class="threshold"
          role="slider"
          tabIndex={0}
          aria-orientation="vertical"
          aria-label={label}
          aria-valuemin={1}
          aria-valuemax={Math.min(largest, Math.ceil(top))}
          aria-valuenow={threshold}
          aria-valuetext={valueText(threshold)}
          style={{ top: `${share}%` }}
          onKeyDown={onKey}
          onKeyUp={() => onDone(threshold)}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            setHeldTop(top);
          }}
          onPointerMove={(event) => heldTop !== undefined && onMove(valueAt(event.clientY))}
          onPointerUp={(event) => {
            setHeldTop(undefined);
            onDone(valueAt(event.clientY));
          }}
          onPointerCancel={() => setHeldTop(undefined)}
        >
          <span>{valueText(threshold)}</span>
        </div>
      </div>
    </div>
  );
}
