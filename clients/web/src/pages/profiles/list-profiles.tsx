// Every upload as a row, counted by its labels, and one upload opened.
import { useState } from "preact/hooks";
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { chooseType, formatTime, rangeKey, rangeName, selector, span, typeName, useProfileTypes } from "../../app/question";
import { withMatcher } from "../../selector";
import { formatCount, formatDuration, formatValue } from "../../units";
import { change, param } from "../../url";
import { Empty } from "../empty";
import { Failure } from "../notice";
import { OneProfile } from "./one-profile";
import { Pager } from "../pager";

const PAGE_SIZE = 100;
const FACET_VALUES = 5;
const ORDERS = ["TIME", "DURATION", "TOTAL"];

interface Label {
  name: string;
  value?: string;
}

export interface ListedProfile {
  id: string;
  timeNs?: string;
  durationNs?: string;
  service?: string;
  labels?: Label[];
  total?: string;
  profileTypes?: string[];
}

interface Listed {
  profiles?: ListedProfile[];
  nextPageToken?: string;
}

interface Facets {
  facets?: { label: string; values?: { value?: string; profileCount?: string }[]; valueCount?: string }[];
  profileCount?: string;
}

export function labelText(labels: Label[] = []): string {
  return labels
    .filter(({ name }) => !name.startsWith("__") && name !== "service_name")
    .map(({ name, value }) => `${name}=${value ?? ""}`)
    .join("  ");
}

function FacetList({ facets }: { facets: Facets }) {
  const words = pageTexts.value.list;
  const shown = (facets.facets ?? []).filter(({ label }) => !label.startsWith("__"));
  return (
    <aside class="labels" aria-label={words.facets}>
      <h2>{words.facets}</h2>
      {shown.map(({ label, values = [], valueCount }) => (
        <section class="label" key={label}>
          <h3 class="code">{label}</h3>
          {values.map(({ value = "", profileCount = "0" }) => (
            <button
              key={value}
              type="button"
              class="facet"
              title={words.only(label, value)}
              onClick={() => change({ q: withMatcher(selector.value, { name: label, op: "=", value }), page: "" })}
            >
              <span class="name">{value || "—"}</span>
              <span class="number">{formatCount(Number(profileCount))}</span>
            </button>
          ))}
          {Number(valueCount ?? 0) > values.length && <p class="muted">+ {formatCount(Number(valueCount) - values.length)}</p>}
        </section>
      ))}
    </aside>
  );
}

export function ListProfiles() {
  return param("id") === "" ? <AllProfiles /> : <OneProfile id={param("id")} />;
}

function AllProfiles() {
  const words = pageTexts.value;
  const types = useProfileTypes();
  const type = chooseType(types.value ?? []);
  const order = ORDERS.find((each) => each === param("order")) ?? "TIME";
  const page = param("page");
  const [showsFacets, setShowsFacets] = useState(true);

  const filter = () => ({
    labelSelector: selector.value,
    profileType: type?.ID,
    start: String(Math.floor(span.value.startMs)),
    end: String(Math.floor(span.value.endMs)),
  });
  const key = type ? `${rangeKey.value} ${type.ID} ${selector.value}` : null;
  const listed = useAnswer(key && `${key} ${order} ${page}`, (abort) =>
    call<Listed>(
      "hearth.v1.ProfileService/ListProfiles",
      { filter: filter(), order: "PROFILE_ORDER_" + order, pageSize: PAGE_SIZE, pageToken: page },
      abort,
    ),
  );
  const facets = useAnswer(key, (abort) =>
    call<Facets>("hearth.v1.ProfileService/ProfileFacets", { filter: filter(), limit: FACET_VALUES }, abort),
  );

  if (types.value?.length === 0) {
    return <Empty />;
  }
  const rows = listed.value?.profiles ?? [];
  return (
    <section aria-busy={listed.isLoading}>
      <div class="headline">
        <h1>{words.list.title(rangeName())}</h1>
        {facets.value && <span class="figure">{words.list.count(formatCount(Number(facets.value.profileCount ?? 0)))}</span>}
        <select aria-label={words.list.order} value={order} onChange={(event) => change({ order: event.currentTarget.value, page: "" })}>
          {ORDERS.map((each) => (
            <option key={each} value={each}>
              {words.list.orders[each]}
            </option>
          ))}
        </select>
        <button type="button" aria-pressed={showsFacets} onClick={() => setShowsFacets(!showsFacets)}>
          {words.list.facets}
        </button>
      </div>
      <Failure error={types.error ?? listed.error ?? facets.error} />
      <div class="columns">
        <div class="rows">
          <table>
            <thead>
              <tr>
                <th scope="col">{words.time}</th>
                <th scope="col">{words.service}</th>
                <th scope="col" class="cut">
                  {words.list.labels}
                </th>
                <th scope="col" class="number">
                  {words.duration}
                </th>
                <th scope="col" class="number">
                  {type && typeName(type)}
                </th>
              </tr>
            </thead>
            <tbody>
              {type &&
                rows.map((row) => (
                  <tr key={row.id}>
                    <th scope="row">
                      <button type="button" class="plain" onClick={() => change({ id: row.id, type: type.ID })}>
                        {formatTime(Number(row.timeNs ?? 0) / 1e6)}
                      </button>
                    </th>
                    <td class="named" title={row.service}>
                      {row.service}
                    </td>
                    <td class="code cut" title={labelText(row.labels)}>
                      {labelText(row.labels)}
                    </td>
                    <td class="number">{row.durationNs ? formatDuration(Number(row.durationNs) / 1e6) : "—"}</td>
                    <td class="number">{formatValue(Number(row.total ?? 0), type.sampleUnit)}</td>
                  </tr>
                ))}
            </tbody>
          </table>
          {listed.value && rows.length === 0 && <p class="muted">{words.nothing}</p>}
          <Pager next={listed.value?.nextPageToken} />
        </div>
        {showsFacets && facets.value && <FacetList facets={facets.value} />}
      </div>
    </section>
  );
}
