// The cost of a function by service, line and span.
import { askByLabel, askLines, askSpansOf, placeOf, type Named, type SpanRow } from "../../api/functions";
import { useAnswer } from "../../api/use-answer";
import { takeFocus } from "../../app/focus";
import { pageTexts } from "../../app/page-texts";
import { PageLink } from "../../app/page-link";
import { texts } from "../../app/settings";
import { withMatcher, withoutMatchers } from "../../selector";
import { formatCount, formatValue } from "../../units";
import { address, change, param, question } from "../../url";
import type { FunctionPart } from "../callers-callees";
import { Failure } from "../notice";
import { ShareCell } from "../share-cell";

const MAX_ROWS = 20;
const SERVICE = "service_name";
const SPANS_BY = ["ENDPOINT", "SPAN_NAME", "TRACE", "SPAN"];

// The menu of a frame leads to this part of the page: it takes the focus, which brings it into view.
function PartHead({ part }: { part: FunctionPart }) {
  return (
    <h2 tabIndex={-1} ref={param("part") === part ? takeFocus : undefined}>
      {texts.value.comparing[part]}
    </h2>
  );
}

function Head({ first, columns }: { first: string; columns: string[] }) {
  return (
    <thead>
      <tr>
        <th scope="col">{first}</th>
        {columns.map((column) => (
          <th key={column} scope="col" class="number">
            {column}
          </th>
        ))}
      </tr>
    </thead>
  );
}

export function ServicesPart({ scope, name, key: of }: Named) {
  const words = texts.value;
  const everywhere = withoutMatchers(scope.selector, ({ name }) => name === SERVICE);
  const services = useAnswer(of, (abort) => askByLabel({ ...scope, selector: everywhere }, name, SERVICE, MAX_ROWS, abort));
  const rows = services.value ?? [];
  const unit = scope.type.split(":")[2] ?? "";
  const all = rows.reduce((sum, row) => sum + row.total, 0);
  return (
    <section class="part" aria-busy={services.isLoading}>
      <h2>{words.comparing.services}</h2>
      <Failure error={services.error} />
      <table>
        <Head first={words.explore.service} columns={[words.profile.self, words.profile.total]} />
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row" class="cut">
                <PageLink
                  page="function"
                  to={{ ...address.value.params, q: withMatcher(everywhere, { name: SERVICE, op: "=", value: row.name }), zoom: "", zoom2: "" }}
                >
                  {row.name || words.explore.noService}
                </PageLink>
              </th>
              <ShareCell value={row.self} total={all} unit={unit} />
              <ShareCell value={row.total} total={all} unit={unit} />
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === MAX_ROWS && <p class="muted">{words.comparing.first(formatCount(MAX_ROWS))}</p>}
    </section>
  );
}

export function LinesPart({ scope, name, key: of }: Named) {
  const words = texts.value;
  const answer = useAnswer(of, (abort) => askLines(scope, name, abort));
  const { lines = [], total = "0", unit = "" } = answer.value ?? {};
  const shown = [...lines].sort((a, b) => Number(b.total ?? 0) - Number(a.total ?? 0)).slice(0, MAX_ROWS);
  return (
    <section class="part" aria-busy={answer.isLoading}>
      <PartHead part="lines" />
      <Failure error={answer.error} />
      <table>
        <Head first={words.comparing.line} columns={[words.profile.self, words.profile.total]} />
        <tbody>
          {shown.map((line, i) => {
            const place = placeOf(line) || words.comparing.noFile;
            return (
              <tr key={i}>
                <th scope="row" class="code cut from-end" title={place}>
                  <bdi>{place}</bdi>
                </th>
                <ShareCell value={Number(line.self ?? 0)} total={Number(total)} unit={unit} />
                <ShareCell value={Number(line.total ?? 0)} total={Number(total)} unit={unit} />
              </tr>
            );
          })}
        </tbody>
      </table>
      {shown.length < lines.length && <p class="muted">{words.comparing.firstOf(formatCount(shown.length), formatCount(lines.length))}</p>}
    </section>
  );
}

function SpanName({ row, by }: { row: SpanRow; by: string }) {
  const id = by === "TRACE" ? row.traceId : by === "SPAN" ? row.spanId : undefined;
  const name = row.endpoint || row.name || row.service;
  if (id === undefined) {
    return <>{by === "ENDPOINT" ? row.endpoint : row.name}</>;
  }
  return (
    <>
      <PageLink class="code" page="traces" to={{ ...question(), id }}>
        {id}
      </PageLink>{" "}
      <span class="muted">{name}</span>
    </>
  );
}

export function SpansPart({ scope, name, key: of }: Named) {
  const words = texts.value.comparing;
  const by = SPANS_BY.find((each) => each === param("spans")) ?? SPANS_BY[0]!;
  const answer = useAnswer(`${of} ${by}`, (abort) => askSpansOf(scope, name, by, MAX_ROWS, abort));
  const { rows = [], total = "0", unlabelled = "0", unit = "" } = answer.value ?? {};
  return (
    <section class="part" aria-busy={answer.isLoading}>
      <div class="tools">
        <PartHead part="spans" />
        <select aria-label={words.spansBy} value={by} onChange={(event) => change({ spans: event.currentTarget.value })}>
          {SPANS_BY.map((each) => (
            <option key={each} value={each}>
              {words.spansByNames[each]}
            </option>
          ))}
        </select>
      </div>
      <Failure error={answer.error} />
      {answer.value && rows.length === 0 && <p class="muted">{words.noSpans}</p>}
      {rows.length > 0 && (
        <table>
          <Head first={words.spansByNames[by]!} columns={[pageTexts.value.traces.spans, pageTexts.value.value]} />
          <tbody>
            {rows.map((row, i) => (
              <tr key={i}>
                <th scope="row" class="cut">
                  <SpanName row={row} by={by} />
                </th>
                <td class="number">{formatCount(Number(row.spanCount ?? 0))}</td>
                <ShareCell value={Number(row.value ?? 0)} total={Number(total)} unit={unit} />
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {rows.length > 0 && Number(unlabelled) > 0 && <p class="muted">{words.without(formatValue(Number(unlabelled), unit))}</p>}
    </section>
  );
}
