// A metric over time with a threshold that is dragged, or moved by arrow keys. Marks at the top say when it was reached.
import { useMemo, useRef, useState } from "preact/hooks";
import type { Maxima } from "../pages/directing/monitor-lines";
import type { Span } from "../time";
import { nearestTime, toMs } from "./line-path";
import { Cursor, frameOf, lineColour, LinePlot } from "./line-plot";
import { useWidth } from "./use-width";

const HEIGHT = 220;
const INSET = { top: 16, right: 0, bottom: 36, left: 64 };
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
  label: string;
  valueText(value: number): string;
  onMove(threshold: number): void;
  onDone(threshold: number): void;
}

// Returns the largest value of the axis, which leaves room above the lines and the threshold.
function scaleTop(maxima: Maxima, threshold: number): number {
  return Math.max(1, (maxima.lines[0]?.peak ?? 0) * 1.1, threshold * 1.25);
}

function linesOf({ lines }: Maxima) {
  // Bands of many lines would hide each other.
  const isBanded = lines.length <= COLOURED;
  return lines.map(({ name, values, lows }, i) => ({ name, values, lows: isBanded ? lows : undefined, colour: i < COLOURED ? lineColour(i) : "--hairline" }));
}

export function ThresholdChart(props: Props) {
  const { maxima, span, threshold, largest, firedMs, startedMs, label, valueText, onMove, onDone } = props;
  // The axis does not change while the threshold is held, or the threshold would move away below the pointer.
  const [heldTop, setHeldTop] = useState<number>();
  const top = heldTop ?? scaleTop(maxima, threshold);
  const [box, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const lines = useMemo(() => linesOf(maxima), [maxima]);
  const frame = frameOf(width, HEIGHT, INSET, { fromMs: span.startMs, toMs: span.endMs, most: top });
  const plot = { frame, timesMs: maxima.timesMs, lines, valueText };
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
    <div class="threshold-chart" ref={box}>
      {width > 0 && <LinePlot {...plot} inset={INSET} />}
      <div
        class="threshold-area"
        ref={area}
        onPointerMove={(event) => {
          const { left } = event.currentTarget.getBoundingClientRect();
          setAt(heldTop === undefined ? nearestTime(maxima.timesMs, toMs(frame, event.clientX - left)) : null);
        }}
        onPointerLeave={() => setAt(null)}
      >
        {at !== null && maxima.timesMs[at] !== undefined && <Cursor {...plot} lines={lines.slice(0, COLOURED)} at={at} />}
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
