// Every service with its cost over time, then the labels of one of them.
import { askTimeline, formatHeight, type Line, type Timeline } from "../../api/timeline";
import { useAnswer } from "../../api/use-answer";
import { chooseType, rangeKey, rangeName, selector, span, typeName, useProfileTypes, type ProfileType } from "../../app/question";
import { PageLink } from "../../app/page-link";
import { favourites, texts, toggleFavourite } from "../../app/settings";
import { Spark } from "../../chart/spark";
import { parseSelector, withMatcher } from "../../selector";
import { chooseStep } from "../../time";
import { formatCount, formatShare } from "../../units";
import { change, param, question } from "../../url";
import { Empty } from "../empty";
import { Gone } from "./explore-gone";
import { Labels, largestOf, SPARK_POINTS } from "./explore-labels";
import { FilterBox, filterText } from "../filter-box";
import { Failure } from "../notice";

const MAX_SERVICES = 2000;

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
        <PageLink page="profile" to={to} label={words.open(name)}>
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

function wholeOf(lines: Line[], service: string): number {
  return lines.find((line) => (line.labels.service_name ?? "") === service)?.mean ?? 0;
}

export function Explore() {
  const filter = filterText();
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
    .filter((line) => (line.labels.service_name ?? "").toLowerCase().includes(filter))
    .sort((a, b) => kept(b) - kept(a) || b.mean - a.mean);
  const largest = largestOf(lines);
  const chosen = param("service");
  // Beside a narrower selector, every other service would be missing.
  const isWhole = parseSelector(selector.value)?.length === 0;

  return (
    <section class="explore" aria-busy={timeline.isLoading}>
      <div class="headline">
        <h1>{type ? words.title(typeName(type), rangeName()) : texts.value.loading}</h1>
        {timeline.value && (
          <span class="figure">{formatHeight(all, timeline.value.unit)}</span>
        )}
        <FilterBox label={words.filterServices} />
      </div>
      <Failure error={types.error ?? timeline.error} />
      <div class="columns">
        <div class="services-side">
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
          {timeline.value && type && isWhole && (
            <Gone present={new Set(lines.map((line) => line.labels.service_name ?? ""))} filter={filter} type={type} />
          )}
        </div>
        {chosen !== "" && type && timeline.value && <Labels type={type} service={chosen} whole={wholeOf(lines, chosen)} />}
      </div>
      {timeline.value && shown.length === 0 && <p class="muted">{words.noneMatches}</p>}
      {timeline.value && shown.length < lines.length && <p class="muted">{`${formatCount(shown.length)} / ${formatCount(lines.length)}`}</p>}
    </section>
  );
}

