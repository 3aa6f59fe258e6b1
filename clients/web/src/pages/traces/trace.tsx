// One trace: its spans with their cost, and the stacks of the one that is chosen.
import { pageTexts } from "../../app/page-texts";
import { partsOfType } from "../../app/question";
import { Said } from "../../app/said";
import { nanosecondsBetween, placeSpans, type PlacedSpan, type StoredSpan } from "./trace-tree";
import { formatCount, formatDuration, formatValue } from "../../units";
import { change, param } from "../../url";
import { MergedFlame } from "../merged";
import { TypeTabs } from "../type-tabs";

const MAX_SPANS = 500;

interface FoundType {
  profileType: string;
  total?: string;
}

interface FoundSpan {
  spanId?: string;
  service?: string;
  types?: FoundType[];
  span?: StoredSpan;
}

export interface Lookup {
  certainty?: string;
  types?: FoundType[];
  labelSelector?: string;
  start?: string;
  end?: string;
  spanIds?: string[];
  traceIds?: string[];
  spans?: FoundSpan[];
  stored?: StoredSpan[];
  searched?: string;
  reason?: string;
}

function placed({ stored = [], spans = [] }: Lookup): PlacedSpan[] {
  return stored.length > 0
    ? placeSpans(stored)
    : spans.map(({ spanId, service, span }) => ({ span: { spanId, service, ...span }, depth: 0 }));
}

function costOf(spans: FoundSpan[], type: string): Map<string, number> {
  return new Map(
    spans.map(({ spanId = "", types = [] }) => [spanId, Number(types.find((each) => each.profileType === type)?.total ?? 0)]),
  );
}

interface RowsProps {
  rows: PlacedSpan[];
  cost: Map<string, number>;
  unit: string;
  chosen: string;
}

function SpanRows({ rows, cost, unit, chosen }: RowsProps) {
  const starts = rows.flatMap(({ span }) => (span.startNs ? [span.startNs] : []));
  const first = starts.reduce((least, each) => (BigInt(each) < BigInt(least) ? each : least), starts[0] ?? "0");
  const whole = Math.max(1, ...rows.map(({ span }) => nanosecondsBetween(first, span.endNs ?? first)));
  const largest = Math.max(1, ...cost.values());
  return (
    <table class="spans">
      <tbody>
        {rows.slice(0, MAX_SPANS).map(({ span, depth }) => {
          const id = span.spanId ?? "";
          const offset = span.startNs ? nanosecondsBetween(first, span.startNs) / whole : 0;
          const length = nanosecondsBetween(span.startNs, span.endNs);
          return (
            <tr key={id} aria-selected={id === chosen}>
              <th scope="row" class="cut" style={{ paddingLeft: `${8 + Math.min(depth, 12) * 12}px` }}>
                {cost.has(id) ? (
                  <button type="button" class="plain" onClick={() => change({ span: id === chosen ? "" : id, zoom: "" })}>
                    {span.name || id}
                  </button>
                ) : (
                  span.name || id
                )}{" "}
                <span class="muted">{span.service}</span>
              </th>
              <td>
                {length > 0 && (
                  <svg class={span.status === "error" ? "span-bar failed" : "span-bar"} viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
                    <rect x={1000 * offset} width={Math.max(2, (1000 * length) / whole)} height="8" />
                  </svg>
                )}
              </td>
              <td class="number">{length > 0 && formatDuration(length / 1e6)}</td>
              <td>{cost.has(id) && <meter min={0} max={largest} value={cost.get(id)} aria-hidden="true" />}</td>
              <td class="number">{cost.has(id) && formatValue(cost.get(id)!, unit)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

export function FoundTrace({ lookup }: { lookup: Lookup }) {
  const words = pageTexts.value;
  const { types = [], spans = [], stored = [] } = lookup;
  const type = types.find((each) => each.profileType === param("type")) ?? types[0];
  const isExact = lookup.certainty === "CERTAINTY_EXACT";
  const chosen = isExact ? param("span") : "";
  const rows = placed(lookup);
  const unit = type ? partsOfType(type.profileType).unit : "";

  return (
    <>
      {type && <p class={isExact ? "muted" : "note"}>{isExact ? words.traces.exact : words.traces.window}</p>}
      {!type && <p class="note">{words.traces.none}</p>}
      {(!type || !isExact) && (
        <p class="muted">
          <Said text={lookup.reason} /> <Said text={lookup.searched} />
        </p>
      )}
      <TypeTabs types={types} chosen={type} />
      {rows.length > 0 && (
        <>
          <h2>{words.traces.spansTitle}</h2>
          {stored.length === 0 && <p class="muted">{words.traces.notStored}</p>}
          <SpanRows rows={rows} cost={costOf(spans, type?.profileType ?? "")} unit={unit} chosen={chosen} />
          {rows.length > MAX_SPANS && <p class="note">{words.traces.cut(formatCount(MAX_SPANS), formatCount(rows.length))}</p>}
        </>
      )}
      {type && (
        <>
          <h2>
            {chosen === "" ? words.traces.whole : (rows.find(({ span }) => span.spanId === chosen)?.span.name ?? chosen)}{" "}
            {chosen !== "" && (
              <button type="button" onClick={() => change({ span: "", zoom: "" })}>
                {words.traces.whole}
              </button>
            )}
          </h2>
          <MergedFlame
            types={types.map(({ profileType }) => profileType)}
            selection={{
              type: type.profileType,
              selector: lookup.labelSelector || "{}",
              startMs: Number(lookup.start ?? 0),
              endMs: Number(lookup.end ?? 0),
              functions: [],
              without: [],
              spanIds: chosen === "" ? lookup.spanIds : [chosen],
            }}
          />
        </>
      )}
    </>
  );
}
