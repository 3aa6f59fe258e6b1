// Every service with its cost over time, then the labels of one of them.
import { useState } from "preact/hooks";
import { call } from "../api/connect";
import { askTimeline, formatHeight, type Line, type Timeline } from "../api/timeline";
import { useAnswer } from "../api/use-answer";
import { chooseType, rangeKey, rangeName, selector, span, typeName, useProfileTypes, type ProfileType } from "../app/question";
import { useLabelNames } from "../app/query-bar";
import { favourites, texts, toggleFavourite } from "../app/settings";
import { Spark } from "../chart/spark";
import { withMatcher } from "../selector";
import { chooseStep } from "../time";
import { formatCount, formatShare } from "../units";
import { change, formatAddress, go, param, question, type Params } from "../url";
import { Empty } from "./empty";
import { Failure } from "./notice";

const SPARK_POINTS = 48;
const MAX_SERVICES = 2000;
const MAX_VALUES = 12;

function largestOf(lines: Line[]): number {
  return lines.reduce((most, line) => line.values.reduce<number>((m, v) => Math.max(m, v ?? 0), most), 0);
}

function PageLink({ to, children, label }: { to: Params; children: preact.ComponentChildren; label: string }) {
  return (
    <a
      href={formatAddress("profile", to)}
      aria-label={label}
      onClick={(event) => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
          event.preventDefault();
          go("profile", to);
        }
      }}
    >
      {children}
    </a>
  );
}

function ServiceRow({ line, timeline, type, largest, all }: RowProps) {
  const words = texts.value.explore;
  const service = line.labels.service_name ?? "";
  const name = service || words.noService;
  const isKept = favourites.value.includes(service);
  const to = { ...question(), type: type.ID, q: withMatcher(selector.value, { name: "service_name", op: "=", value: service }) };
  const isChosen = param("service") === service;
  return (
    <tr aria-selected={isChosen}>
      <td>
        <button type="button" class="star" aria-pressed={isKept} aria-label={words.favourite(name)} onClick={() => toggleFavourite(service)}>
          {isKept ? "★" : "☆"}
        </button>
      </td>
      <th scope="row">
        <PageLink to={to} label={words.open(name)}>
          {name}
        </PageLink>
      </th>
      <td>
        <Spark values={line.values} largest={largest} />
      </td>
      <td class="number">{formatHeight(line.mean, timeline.unit)}</td>
      <td class="number share">{formatShare(line.mean, all)}</td>
      <td>
        <button
          type="button"
          aria-expanded={isChosen}
          aria-label={words.labels(name)}
          onClick={() => change({ service: isChosen ? "" : service })}
        >
          {isChosen ? "▾" : "▸"}
        </button>
      </td>
    </tr>
  );
}

interface RowProps {
  line: Line;
  timeline: Timeline;
  type: ProfileType;
  largest: number;
  all: number;
}

interface LabelStats {
  values?: { value?: string; sum?: string; count?: string }[];
  valueCount?: string;
}

function LabelBars({ type, service, label }: { type: ProfileType; service: string; label: string }) {
  const within = withMatcher(selector.value, { name: "service_name", op: "=", value: service });
  const stats = useAnswer(`${rangeKey.value} ${type.ID} ${within} ${label}`, (abort) =>
    call<LabelStats>(
      "hearth.v1.QueryService/LabelStats",
      {
        selection: {
          profileType: type.ID,
          labelSelector: within,
          start: String(Math.floor(span.value.startMs)),
          end: String(Math.floor(span.value.endMs)),
        },
        label,
        limit: String(MAX_VALUES),
      },
      abort,
    ),
  );
  const values = stats.value?.values ?? [];
  const sum = values.reduce((all, each) => all + Number(each.sum ?? 0), 0);
  const narrow = (op: "=" | "!=", value: string) => {
    go("profile", { ...question(), type: type.ID, q: withMatcher(within, { name: label, op, value }) });
  };
  const words = texts.value.explore;
  // The label of other services.
  if (stats.value && values.every((each) => (each.value ?? "") === "")) {
    return null;
  }
  return (
    <section class="label">
      <h3 class="code">{label}</h3>
      <Failure error={stats.error} />
      {values.map((each) => {
        const value = each.value ?? "";
        const part = Number(each.sum ?? 0);
        return (
          <div class="label-bar" key={value}>
            <span class="name" title={value}>
              {value === "" ? "—" : value}
            </span>
            <meter min={0} max={sum || 1} value={part} />
            <span class="number">{formatShare(part, sum)}</span>
            <button type="button" title={words.include} aria-label={`${words.include}: ${value}`} onClick={() => narrow("=", value)}>
              +
            </button>
            <button type="button" title={words.exclude} aria-label={`${words.exclude}: ${value}`} onClick={() => narrow("!=", value)}>
              −
            </button>
          </div>
        );
      })}
    </section>
  );
}

function Labels({ type, service }: { type: ProfileType; service: string }) {
  const names = useLabelNames().filter((name) => name !== "service_name");
  const words = texts.value.explore;
  return (
    <section class="labels" aria-label={words.labels(service)}>
      <h2>{words.labels(service)}</h2>
      {names.length === 0 && <p class="muted">{words.noLabels}</p>}
      {names.map((label) => (
        <LabelBars key={label} type={type} service={service} label={label} />
      ))}
    </section>
  );
}

export function Explore() {
  const [filter, setFilter] = useState("");
  const types = useProfileTypes();
  const type = chooseType(types.value ?? []);
  const words = texts.value.explore;
  const key = type ? `${rangeKey.value} ${type.ID} ${selector.value}` : null;
  const timeline = useAnswer(key, (abort) =>
    askTimeline(
      {
        type: type!.ID,
        selector: selector.value,
        span: span.value,
        stepS: chooseStep(span.value, SPARK_POINTS),
        groupBy: ["service_name"],
        limit: MAX_SERVICES,
      },
      abort,
    ),
  );

  if (types.value?.length === 0) {
    return <Empty />;
  }
  const lines = timeline.value?.lines ?? [];
  const all = lines.reduce((sum, line) => sum + line.mean, 0);
  const kept = (line: Line) => (favourites.value.includes(line.labels.service_name ?? "") ? 1 : 0);
  const shown = lines
    .filter((line) => (line.labels.service_name ?? "").toLowerCase().includes(filter.toLowerCase()))
    .sort((a, b) => kept(b) - kept(a) || b.mean - a.mean);
  const largest = largestOf(lines);
  const chosen = param("service");

  return (
    <section class="explore" aria-busy={timeline.isLoading}>
      <div class="headline">
        <h1>{type ? words.title(typeName(type), rangeName()) : texts.value.loading}</h1>
        {timeline.value && (
          <span class="figure">{formatHeight(all, timeline.value.unit)}</span>
        )}
        <input
          type="search"
          aria-label={words.filterServices}
          placeholder={words.filterServices}
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      </div>
      <Failure error={types.error ?? timeline.error} />
      <div class="columns">
        <table class="services">
          <thead>
            <tr>
              <td />
              <th scope="col">{words.service}</th>
              <td />
              <th scope="col" class="number">
                {words.total}
              </th>
              <th scope="col" class="number">
                {words.share}
              </th>
              <td />
            </tr>
          </thead>
          <tbody>
            {timeline.value &&
              shown.map((line) => (
                <ServiceRow key={line.labels.service_name} line={line} timeline={timeline.value!} type={type!} largest={largest} all={all} />
              ))}
          </tbody>
        </table>
        {chosen !== "" && type && <Labels type={type} service={chosen} />}
      </div>
      {timeline.value && shown.length === 0 && <p class="muted">{words.noneMatches}</p>}
      {timeline.value && shown.length < lines.length && <p class="muted">{`${formatCount(shown.length)} / ${formatCount(lines.length)}`}</p>}
    </section>
  );
}

