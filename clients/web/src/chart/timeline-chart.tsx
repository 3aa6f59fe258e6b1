// The cost over time: lines by group, and a brush for the pointer and for keys.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatHeight, type Timeline, type TimelineExemplar } from "../api/timeline";
import { Brush } from "./brush";
import "./chart.css";
import { exemplarsPlugin } from "./exemplars";
import { clustersOf, Markers, type Marker } from "./markers";
import { tickTexts } from "./time-axis";

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

// A part of the range with a name, such as the baseline of a comparison.
export interface Band {
  kind: "baseline" | "comparison";
  fromMs: number;
  toMs: number;
  name: string;
}

interface Props {
  timeline: Timeline;
  theme: string;
  language?: string;
  label: string;
  // The line that sums all groups that have none of their own.
  others?: number;
  bands?: Band[];
  markers?: Marker[];
  markersLabel?: string;
  // What the brush selects now is a window to compare, as with the key Alt.
  isComparing?: boolean;
  windowNames?: { baseline: string; comparison: string };
  onRange(fromMs: number, toMs: number): void;
  onCompare?(fromMs: number, toMs: number): void;
  // The place of the crosshair among the times.
  onPoint?(at: number | null): void;
  onReset?(): void;
  // What to say of a single profile on the line, and how to open it.
  exemplarTitle?(exemplar: TimelineExemplar): string;
  onExemplar?(exemplar: TimelineExemplar): void;
}

function optionsOf({ timeline, language = "en", others }: Props): Omit<uPlot.Options, "width"> {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name);
  const axis = {
    stroke: colour("--muted"),
    grid: { stroke: colour("--hairline"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
  };
  const isSingle = timeline.lines.length === 1;
  return {
    height: HEIGHT,
    padding: [12, 12, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, setScale: false } },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
    axes: [
      { ...axis, size: 36, values: (_, ticks) => tickTexts(ticks.map((tick) => tick * 1000), language) },
      { ...axis, size: 76, values: (_, ticks) => ticks.map((tick) => formatHeight(tick, timeline.unit)) },
    ],
    series: [
      {},
      ...timeline.lines.map((line, i) => ({
        label: lineName(line.labels),
        stroke: isSingle ? colour("--ember") : i === others ? colour("--muted") : lineColour(i),
        fill: isSingle ? colour("--ember").replace(")", " / 0.18)") : undefined,
        width: 1.5,
        points: { show: true, size: 4, filter: (u: uPlot, of: number) => lonely(u.data[of] as (number | null)[]) },
      })),
    ],
  };
}

export function TimelineChart(props: Props) {
  const { timeline, theme, language, others, label, bands = [], markers = [] } = props;
  const box = useRef<HTMLDivElement>(null);
  const brush = useRef<Brush | null>(null);
  // The latest functions, for a chart that is made once for each timeline.
  const latest = useRef(props);
  latest.current = props;
  const [plot, setPlot] = useState<uPlot | null>(null);
  const [, setSize] = useState(0);

  useEffect(() => {
    const made = new uPlot(
      {
        width: box.current!.clientWidth,
        ...optionsOf(props),
        plugins: props.onExemplar
          ? [
              exemplarsPlugin(
                timeline.exemplars ?? [],
                (exemplar) => latest.current.exemplarTitle?.(exemplar) ?? "",
                (exemplar) => latest.current.onExemplar?.(exemplar),
              ),
            ]
          : [],
        hooks: {
          setSelect: [() => brush.current?.released()],
          setCursor: [(u) => (brush.current?.dragged(), latest.current.onPoint?.(u.cursor.idx ?? null))],
        },
      },
      [timeline.timesMs.map((ms) => ms / 1000), ...timeline.lines.map((line) => line.values)],
      box.current!,
    );
    brush.current = new Brush(made, timeline.timesMs, () => latest.current);
    setPlot(made);
    const resized = new ResizeObserver(() => {
      const width = box.current!.clientWidth;
      made.setSize({ width, height: HEIGHT });
      setSize(width);
    });
    resized.observe(box.current!);
    return () => {
      resized.disconnect();
      brush.current = null;
      made.destroy();
    };
  }, [timeline, theme, language, others]);

  const toX = (ms: number) => (plot ? plot.over.offsetLeft + plot.valToPos(ms / 1000, "x") : 0);
  // A chart that was destroyed has no scale any more.
  const isReady = plot !== null && plot.scales.x.min !== undefined && plot.over.isConnected;
  return (
    <div class="chart">
      <div
        class={props.isComparing ? "timeline comparing" : "timeline"}
        ref={box}
        role="application"
        tabIndex={0}
        aria-label={label}
        title={label}
        onDblClick={props.onReset}
        onKeyDown={(event) => brush.current?.pressed(event)}
        onBlur={() => brush.current?.clear()}
      />
      {isReady &&
        bands.map(({ kind, fromMs, toMs, name }) => (
          <span key={kind} class={"band " + kind} style={{ left: `${toX(fromMs)}px`, width: `${toX(toMs) - toX(fromMs)}px` }}>
            {name}
          </span>
        ))}
      {isReady && markers.length > 0 && (
        <Markers clusters={clustersOf(markers, toX)} label={props.markersLabel ?? ""} width={plot.width} />
      )}
    </div>
  );
}
