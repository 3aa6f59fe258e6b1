// The cost over time: lines by group, a brush for the pointer and for keys, and what happened meanwhile.
import { useMemo, useState } from "preact/hooks";
import { formatHeight, type Timeline, type TimelineExemplar } from "../api/timeline";
import { useBrush } from "./brush";
import "./chart.css";
import { nearest, spread, type Mark } from "./exemplars";
import { nearestValue, toX, toY, type Frame } from "./line-path";
import { Cursor, frameOf, lineColour, LinePlot } from "./line-plot";
import { clustersOf, Markers, type Marker } from "./markers";
import { useWidth } from "./use-width";

const HEIGHT = 132;
const INSET = { top: 12, right: 12, bottom: 36, left: 76 };
// Values are read from as far away as this.
const REACH_PX = 10;
const DIAMOND = "m0-3.5l3.5 3.5l-3.5 3.5l-3.5-3.5z";

export function lineName(labels: Record<string, string>): string {
  return Object.values(labels).join(" ");
}

// A part of the range with a name, such as the baseline of a comparison.
interface Band {
  kind: "baseline" | "comparison" | "chosen";
  fromMs: number;
  toMs: number;
  name: string;
}

interface Props {
  timeline: Timeline;
  label: string;
  // The line that sums all groups that have none of their own, and its name.
  others?: { at: number; name: string };
  bands?: Band[];
  markers?: Marker[];
  markersLabel?: string;
  // What the brush selects now is a window to compare, as with the key Alt.
  isComparing?: boolean;
  windowNames?: { baseline: string; comparison: string };
  onRange(fromMs: number, toMs: number): void;
  onCompare?(fromMs: number, toMs: number): void;
  onReset?(): void;
  // What to say of a single profile on the line, and how to open it.
  exemplarTitle?(exemplar: TimelineExemplar): string;
  onExemplar?(exemplar: TimelineExemplar): void;
}

function linesOf({ timeline, others }: Props) {
  return timeline.lines.map(({ labels, values }, i) => ({
    name: i === others?.at ? others.name : lineName(labels) || "—",
    colour: timeline.lines.length === 1 ? "--ember" : i === others?.at ? "--muted" : lineColour(i),
    values,
  }));
}

// The axis ends a little above the highest value, and names of bands have a line of their own.
function frameFor({ timesMs, lines }: Timeline, width: number, hasBands: boolean): Frame {
  const room = hasBands ? 1.24 : 1.08;
  const highest = lines.reduce((most, { values }) => values.reduce<number>((sofar, value) => Math.max(sofar, value ?? 0), most), 0);
  return frameOf(width, HEIGHT, INSET, { fromMs: timesMs[0] ?? 0, toMs: timesMs.at(-1) ?? 0, most: highest > 0 ? highest * room : 1 });
}

function marksOf(frame: Frame, { timesMs, lines, exemplars = [] }: Timeline): Mark[] {
  const xOf = ({ index }: TimelineExemplar) => toX(frame, timesMs[index]!);
  return spread(exemplars, xOf).map((exemplar) => ({
    x: xOf(exemplar),
    y: toY(frame, lines[0]?.values[exemplar.index] ?? 0),
    exemplar,
  }));
}

function Bands({ bands, frame }: { bands: Band[]; frame: Frame }) {
  return (
    <>
      {bands.map(({ kind, fromMs, toMs, name }) => {
        const left = Math.max(0, toX(frame, fromMs));
        return (
          <span key={kind} class={"band " + kind} style={{ left: `${left}px`, width: `${Math.max(0, toX(frame, toMs) - left)}px` }}>
            {name}
          </span>
        );
      })}
    </>
  );
}

export function TimelineChart(props: Props) {
  const { timeline, others, label, bands = [], markers = [], windowNames, exemplarTitle, onExemplar } = props;
  const { timesMs } = timeline;
  const [box, width] = useWidth();
  const lines = useMemo(() => linesOf(props), [timeline, others?.name]);
  const frame = useMemo(() => frameFor(timeline, width, bands.length > 0), [timeline, width, bands.length > 0]);
  const marks = useMemo(() => (onExemplar ? marksOf(frame, timeline) : []), [frame, onExemplar !== undefined]);
  const [pointed, setPointed] = useState<Mark>();

  const brush = useBrush(frame, timesMs, { ...props, onOpen: () => mark && onExemplar!(mark.exemplar) });
  const { chosen, pointer } = brush;
  const reach = (REACH_PX * timesMs.length) / frame.width;
  const at = brush.isByKey || brush.at === null ? brush.at : nearestValue(lines, brush.at, reach);
  const mark = marks.find((each) => (brush.isByKey ? each.exemplar.index === at : each === pointed));
  const chosenBands = (): Band[] => {
    const { fromMs, toMs, isCompared } = chosen!;
    const { baseline = "", comparison = "" } = windowNames ?? {};
    return isCompared
      ? [{ kind: "baseline", fromMs: 2 * fromMs - toMs, toMs: fromMs, name: baseline }, { kind: "comparison", fromMs, toMs, name: comparison }]
      : [{ kind: "chosen", fromMs, toMs, name: "" }];
  };
  const valueText = (value: number) => formatHeight(value, timeline.unit);
  const isKnown = width > 0;
  return (
    <div class="chart">
      <div
        class={props.isComparing ? "timeline comparing" : "timeline"}
        ref={box}
        role="application"
        tabIndex={0}
        aria-label={label}
        onDblClick={props.onReset}
        onKeyDown={brush.onKeyDown}
        onBlur={brush.clear}
      >
        {isKnown && <LinePlot frame={frame} inset={INSET} timesMs={timesMs} lines={lines} unit={timeline.unit} isArea={lines.length === 1} valueText={valueText} />}
        {isKnown && (
          <div
            class={mark ? "plot pointed" : "plot"}
            style={{ left: `${INSET.left}px`, top: `${INSET.top}px`, width: `${frame.width}px`, height: `${frame.height}px` }}
            {...pointer}
            onPointerMove={(event) => {
              const area = event.currentTarget.getBoundingClientRect();
              setPointed(nearest(marks, event.clientX - area.left, event.clientY - area.top));
              pointer.onPointerMove(event);
            }}
          >
            <Bands bands={bands} frame={frame} />
            {chosen && <Bands bands={chosenBands()} frame={frame} />}
            {marks.length > 0 && (
              <svg class="diamonds" aria-hidden="true">
                {marks.map(({ x, y, exemplar }) => (
                  <path key={exemplar.profileId} d={`M${x} ${y}${DIAMOND}`} />
                ))}
              </svg>
            )}
            {at !== null && (
              <Cursor frame={frame} timesMs={timesMs} lines={lines} at={at} valueText={valueText} note={mark && exemplarTitle?.(mark.exemplar)} />
            )}
          </div>
        )}
      </div>
      {isKnown && markers.length > 0 && (
        <Markers clusters={clustersOf(markers, (ms) => INSET.left + toX(frame, ms))} label={props.markersLabel ?? ""} width={width} />
      )}
    </div>
  );
}
