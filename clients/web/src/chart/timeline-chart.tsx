// The cost over time: lines by group, a brush that sets the range.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatHeight, type Timeline, type TimelineExemplar } from "../api/timeline";
import { exemplarsPlugin } from "./exemplars";

const HEIGHT = 132;
const HUES = [248, 45, 155, 320, 95, 200, 20, 280];

// Far enough apart in hue, and dark enough on both backgrounds, to be told from each other.
export function lineColour(i: number): string {
  return `oklch(0.62 0.14 ${HUES[i % HUES.length]})`;
}

export function lineName(labels: Record<string, string>): string {
  return Object.values(labels).join(" ");
}

// A value between two gaps makes no line, so it is drawn as a point.
export function lonely(values: (number | null)[]): number[] {
  const isGap = (i: number) => values[i] === null || values[i] === undefined;
  return values.flatMap((_, i) => (!isGap(i) && isGap(i - 1) && isGap(i + 1) ? [i] : []));
}

interface Props {
  timeline: Timeline;
  theme: string;
  label: string;
  onRange(fromMs: number, toMs: number): void;
  onReset(): void;
  // What to say of a single profile on the line, and how to open it.
  exemplarTitle?(exemplar: TimelineExemplar): string;
  onExemplar?(exemplar: TimelineExemplar): void;
}

export function TimelineChart({ timeline, theme, label, onRange, onReset, exemplarTitle, onExemplar }: Props) {
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const style = getComputedStyle(document.documentElement);
    const muted = style.getPropertyValue("--muted");
    const hairline = style.getPropertyValue("--hairline");
    const font = "11px system-ui, sans-serif";
    const axis = { stroke: muted, grid: { stroke: hairline, width: 1 }, ticks: { show: false }, font };
    const isSingle = timeline.lines.length === 1;

    const plot = new uPlot(
      {
        width: box.current!.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false, setScale: false } },
        scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
        axes: [
          { ...axis, size: 36 },
          { ...axis, size: 76, values: (_, ticks) => ticks.map((tick) => formatHeight(tick, timeline.unit)) },
        ],
        series: [
          {},
          ...timeline.lines.map((line, i) => ({
            label: lineName(line.labels),
            stroke: isSingle ? style.getPropertyValue("--ember") : lineColour(i),
            fill: isSingle ? style.getPropertyValue("--ember").replace(")", " / 0.18)") : undefined,
            width: 1.5,
            points: { show: true, size: 4, filter: (u: uPlot, of: number) => lonely(u.data[of] as (number | null)[]) },
          })),
        ],
        plugins: onExemplar ? [exemplarsPlugin(timeline.exemplars ?? [], exemplarTitle ?? (() => ""), onExemplar)] : [],
        hooks: {
          setSelect: [
            (u) => {
              if (u.select.width > 4) {
                const from = u.posToVal(u.select.left, "x");
                const to = u.posToVal(u.select.left + u.select.width, "x");
                onRange(Math.floor(from * 1000), Math.ceil(to * 1000));
              }
            },
          ],
        },
      },
      [timeline.timesMs.map((ms) => ms / 1000), ...timeline.lines.map((line) => line.values)],
      box.current!,
    );
    const resized = new ResizeObserver(() => plot.setSize({ width: box.current!.clientWidth, height: HEIGHT }));
    resized.observe(box.current!);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [timeline, theme]);

  return <div class="timeline" ref={box} role="img" aria-label={label} title={label} onDblClick={onReset} />;
}
