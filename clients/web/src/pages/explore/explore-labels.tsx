// The labels of a service: what each value costs over time, its share, its highest point, and the way into or around it.
import { call } from "../../api/connect";
import { askTimeline, formatHeight, type Line, type Timeline } from "../../api/timeline";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { rangeKey, selector, span, type ProfileType } from "../../app/question";
import { useLabelNames } from "../../app/query-bar";
import { texts } from "../../app/settings";
import { Spark } from "../../chart/spark";
import { visibleName } from "../../flame/names";
import { withMatcher } from "../../selector";
import { chooseStep } from "../../time";
import { formatCount, formatShare } from "../../units";
import { change, go, param, question } from "../../url";
import "./explore.css";
import { Failure } from "../notice";

export const SPARK_POINTS = 48;
const MAX_VALUES = 8;
const MAX_LABELS = 6;

export function largestOf(lines: Line[]): number {
  return lines.reduce((most, line) => line.values.reduce<number>((m, v) => Math.max(m, v ?? 0), most), 0);
}

interface Counted {
  timeline: Timeline;
  valueCount: number;
}

// Like abort, but what an answer lacks is not noted for it: the row below the values says how many there are.
function withoutNotes(abort: AbortSignal): AbortSignal {
  const own = new AbortController();
  abort.addEventListener("abort", () => own.abort());
  return own.signal;
}

async function ask(type: ProfileType, within: string, label: string, abort: AbortSignal): Promise<Counted> {
  const { startMs, endMs } = span.value;
  const stepS = chooseStep(span.value, SPARK_POINTS);
  const selection = { profileType: type.ID, labelSelector: within, start: String(Math.floor(startMs)), end: String(Math.floor(endMs)) };
  const [timeline, stats] = await Promise.all([
    askTimeline({ type: type.ID, selector: within, span: span.value, stepS, groupBy: [label], limit: MAX_VALUES }, withoutNotes(abort)),
    // How many values there are beside those with a line.
    call<{ valueCount?: string }>("hearth.v1.QueryService/LabelStats", { selection, label, limit: "1" }, withoutNotes(abort)),
  ]);
  return { timeline, valueCount: Number(stats.valueCount ?? 0) };
}

interface ValueProps {
  value: string;
  line: Line;
  unit: string;
  largest: number;
  whole: number;
  narrow(op: "=" | "!=", value: string): void;
}

function Value({ value, line, unit, largest, whole, narrow }: ValueProps) {
  const words = texts.value.explore;
  const name = value === "" ? "—" : visibleName(value);
  return (
    <tr>
      <th scope="row" class="code" title={name}>
        {name}
      </th>
      <td>
        <Spark values={line.values} largest={largest} />
      </td>
      <td>
        <meter min={0} max={whole || 1} value={line.mean} aria-hidden="true" />
      </td>
      <td class="number">{formatShare(line.mean, whole)}</td>
      <td class="number">{formatHeight(largestOf([line]), unit)}</td>
      <td class="actions">
        <button type="button" title={words.include} aria-label={`${words.include}: ${name}`} onClick={() => narrow("=", value)}>
          +
        </button>
        <button type="button" title={words.exclude} aria-label={`${words.exclude}: ${name}`} onClick={() => narrow("!=", value)}>
          −
        </button>
      </td>
    </tr>
  );
}

interface LabelProps {
  type: ProfileType;
  service: string;
  label: string;
  // Of the service, which its values share.
  whole: number;
}

function Label({ type, service, label, whole }: LabelProps) {
  const words = pageTexts.value.explore;
  const within = withMatcher(selector.value, { name: "service_name", op: "=", value: service });
  const counted = useAnswer(`${rangeKey.value} ${type.ID} ${within} ${label}`, (abort) => ask(type, within, label, abort));
  const { timeline, valueCount = 0 } = counted.value ?? {};
  const lines = timeline?.lines ?? [];
  // The label of other services.
  if (timeline && lines.every((line) => (line.labels[label] ?? "") === "")) {
    return null;
  }
  const narrow = (op: "=" | "!=", value: string) => {
    go("profile", { ...question(), type: type.ID, q: withMatcher(within, { name: label, op, value }) });
  };
  return (
    <section class="label" aria-busy={counted.isLoading}>
      <Failure error={counted.error} />
      <table class="values">
        <thead>
          <tr>
            <th scope="col" class="code">
              {label}
            </th>
            <td />
            <td />
            <th scope="col" class="number">
              {texts.value.explore.share}
            </th>
            <th scope="col" class="number">
              {words.max}
            </th>
            <td />
          </tr>
        </thead>
        <tbody>
          {timeline &&
            lines.map((line) => {
              const value = line.labels[label] ?? "";
              return <Value key={value} value={value} line={line} unit={timeline.unit} largest={largestOf(lines)} whole={whole} narrow={narrow} />;
            })}
        </tbody>
      </table>
      {valueCount > lines.length && <p class="muted">{words.moreValues(formatCount(valueCount - lines.length))}</p>}
    </section>
  );
}

export function Labels({ type, service, whole }: { type: ProfileType; service: string; whole: number }) {
  const names = useLabelNames().filter((name) => name !== "service_name");
  const words = texts.value.explore;
  const shown = param("labels") === "all" ? names : names.slice(0, MAX_LABELS);
  return (
    <section class="labels of-service" aria-label={words.labels(service)}>
      <h2>{words.labels(service)}</h2>
      {names.length === 0 && <p class="muted">{words.noLabels}</p>}
      {shown.map((label) => (
        <Label key={`${service} ${label}`} type={type} service={service} label={label} whole={whole} />
      ))}
      {shown.length < names.length && (
        <button type="button" onClick={() => change({ labels: "all" })}>
          {pageTexts.value.explore.moreLabels(formatCount(names.length - shown.length))}
        </button>
      )}
    </section>
  );
}
