// Queries that this server answered or refused lately: which of them are slow, and who sends them.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { formatAgo } from "../../app/ago";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { Said } from "../../app/said";
import { formatValue } from "../../units";
import { change, param } from "../../url";
import { FilterBox, filterText } from "../filter-box";
import { Failure } from "../notice";
import { Rows } from "../rows";

interface Query {
  receivedMs?: string;
  tookUs?: string;
  waitedUs?: string;
  subject?: string;
  method?: string;
  code?: string;
  message?: string;
  request?: string;
  answerBytes?: string;
}

function Took({ query }: { query: Query }) {
  const words = pageTexts.value.admin;
  const [took, waited] = [Number(query.tookUs ?? 0), Number(query.waitedUs ?? 0)];
  return (
    <>
      {formatValue(took * 1000, "nanoseconds")}
      {waited * 10 > took && <div class="muted">{words.waited(formatValue(waited * 1000, "nanoseconds"))}</div>}
    </>
  );
}

function Row({ query }: { query: Query }) {
  const at = Number(query.receivedMs ?? 0);
  return (
    <tr>
      <th scope="row" title={formatTime(at)}>
        {formatAgo(at)}
      </th>
      <td class="number">
        <Took query={query} />
      </td>
      <td class="number">{formatValue(Number(query.answerBytes ?? 0), "bytes")}</td>
      <td>{query.subject}</td>
      <td class="wrapped">
        <span class="code">{query.method}</span>
        <div class="code muted">{query.request}</div>
        {query.code !== "ok" && (
          <div class="error">
            {query.code} <Said text={query.message} />
          </div>
        )}
      </td>
    </tr>
  );
}

export function RecentQueries() {
  const words = pageTexts.value.admin;
  const slowOnly = param("slow") !== "";
  const byTime = param("sort") === "";
  const answer = useAnswer(`queries ${slowOnly}`, (abort) =>
    call<{ queries?: Query[] }>("hearth.v1.AdminService/RecentQueries", { slowOnly }, abort),
  );
  const filter = filterText();
  const queries = (answer.value?.queries ?? []).filter(({ subject = "", method = "", request = "", message = "" }) =>
    `${subject}\n${method}\n${request}\n${message}`.toLowerCase().includes(filter),
  );
  if (!byTime) {
    queries.sort((a, b) => Number(b.tookUs ?? 0) - Number(a.tookUs ?? 0));
  }
  return (
    <section aria-busy={answer.isLoading}>
      <p>{words.queriesHint}</p>
      <Failure error={answer.error} />
      <div class="inline">
        <FilterBox label={words.filterQueries} />
        <button type="button" aria-pressed={slowOnly} onClick={() => change({ slow: slowOnly ? "" : "1" })}>
          {words.slowOnly}
        </button>
        <button type="button" aria-pressed={!byTime} onClick={() => change({ sort: byTime ? "took" : "" })}>
          {words.slowestFirst}
        </button>
      </div>
      {answer.value && queries.length === 0 && <p class="muted">{slowOnly && filter === "" ? words.noSlow : words.noQueries}</p>}
      {queries.length > 0 && (
        <Rows shape="tall" heads={[words.received, { number: words.took }, { number: words.answer }, words.subject, words.query]}>
          {queries.map((query, i) => (
            <Row key={i} query={query} />
          ))}
        </Rows>
      )}
    </section>
  );
}
