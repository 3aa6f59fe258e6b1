// The server's own state: background work, limits and their use, refused uploads, tokens.
import { call } from "../api/connect";
import { useAnswer } from "../api/use-answer";
import { pageTexts } from "../app/page-texts";
import { formatTime } from "../app/question";
import { formatCount, formatDuration, formatValue } from "../units";
import { Failure } from "./notice";
import { Tokens } from "./tokens";

const TABLES_SHOWN = 10;
const ERRORS_SHOWN = "50";

interface Status {
  hasBuilder?: boolean;
  builderHost?: string;
  lagMs?: string;
  lateRows?: string;
  tombstones?: string;
  oldestProfileMs?: string;
  tables?: { table: string; bytes?: string }[];
}

interface Usage {
  limits?: { limit: string; used?: string; max?: string; refused?: string }[];
  sinceMs?: string;
}

interface IngestErrors {
  errors?: { lastMs?: string; uploads?: string; client?: string; route?: string; code?: string; message?: string }[];
}

function StatusPart() {
  const words = pageTexts.value.admin;
  const answer = useAnswer("status", (abort) => call<Status>("hearth.v1.AdminService/Status", {}, abort));
  const status = answer.value;
  const tables = [...(status?.tables ?? [])].sort((a, b) => Number(b.bytes ?? 0) - Number(a.bytes ?? 0));
  const sum = (of: typeof tables) => of.reduce((all, each) => all + Number(each.bytes ?? 0), 0);
  const rest = tables.slice(TABLES_SHOWN);
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.status}</h2>
      <Failure error={answer.error} />
      {status && (
        <>
          <p class={status.hasBuilder ? "" : "note"}>{status.hasBuilder ? words.builder(status.builderHost ?? "") : words.noBuilder}</p>
          {Number(status.lagMs ?? 0) > 0 && <p class="note">{words.lag(formatDuration(Number(status.lagMs)))}</p>}
          {Number(status.lateRows ?? 0) > 0 && <p>{words.late(formatCount(Number(status.lateRows)))}</p>}
          {Number(status.tombstones ?? 0) > 0 && <p>{words.tombstones(formatCount(Number(status.tombstones)))}</p>}
          {Number(status.oldestProfileMs ?? 0) > 0 && <p>{words.oldest(formatTime(Number(status.oldestProfileMs)))}</p>}
          <p class="verdict">{words.disk(formatValue(sum(tables), "bytes"))}</p>
          <table class="narrow">
            <thead>
              <tr>
                <th scope="col">{words.table}</th>
                <th scope="col" class="number">
                  {words.bytes}
                </th>
              </tr>
            </thead>
            <tbody>
              {tables.slice(0, TABLES_SHOWN).map(({ table, bytes }) => (
                <tr key={table}>
                  <th scope="row" class="code">
                    {table}
                  </th>
                  <td class="number">{formatValue(Number(bytes ?? 0), "bytes")}</td>
                </tr>
              ))}
              {rest.length > 0 && (
                <tr>
                  <th scope="row" class="muted">
                    {words.otherTables(formatCount(rest.length))}
                  </th>
                  <td class="number">{formatValue(sum(rest), "bytes")}</td>
                </tr>
              )}
            </tbody>
          </table>
        </>
      )}
    </section>
  );
}

function UsagePart() {
  const words = pageTexts.value.admin;
  const answer = useAnswer("usage", (abort) => call<Usage>("hearth.v1.AdminService/Usage", {}, abort));
  const { limits = [], sinceMs = "0" } = answer.value ?? {};
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.usage}</h2>
      <Failure error={answer.error} />
      {Number(sinceMs) > 0 && <p class="muted">{words.since(formatTime(Number(sinceMs)))}</p>}
      <table class="narrow">
        <thead>
          <tr>
            <th scope="col">{words.limit}</th>
            <th scope="col" class="number">
              {words.used}
            </th>
            <th scope="col" class="number">
              {words.max}
            </th>
            <th scope="col" />
            <th scope="col" class="number">
              {words.refused}
            </th>
          </tr>
        </thead>
        <tbody>
          {limits.map(({ limit, used = "0", max = "0", refused = "0" }) => (
            <tr key={limit}>
              <th scope="row" class="code">
                {limit}
              </th>
              <td class="number">{formatCount(Number(used))}</td>
              <td class="number">{Number(max) > 0 ? formatCount(Number(max)) : words.noLimit}</td>
              <td>{Number(max) > 0 && <meter min={0} max={Number(max)} value={Number(used)} />}</td>
              <td class={Number(refused) > 0 ? "number note" : "number"}>{formatCount(Number(refused))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function ErrorsPart() {
  const words = pageTexts.value.admin;
  const answer = useAnswer("ingest errors", (abort) =>
    call<IngestErrors>("hearth.v1.AdminService/IngestErrors", { limit: ERRORS_SHOWN }, abort),
  );
  const errors = answer.value?.errors ?? [];
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.errors}</h2>
      <Failure error={answer.error} />
      {answer.value && errors.length === 0 && <p class="muted">{words.noErrors}</p>}
      {errors.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">{words.last}</th>
              <th scope="col" class="number">
                {words.uploads}
              </th>
              <th scope="col">{words.client}</th>
              <th scope="col">{words.route}</th>
              <th scope="col">{words.reason}</th>
            </tr>
          </thead>
          <tbody>
            {errors.map((error) => (
              <tr key={`${error.lastMs} ${error.route} ${error.message}`}>
                <th scope="row">{formatTime(Number(error.lastMs ?? 0))}</th>
                <td class="number">{formatCount(Number(error.uploads ?? 0))}</td>
                <td>{error.client}</td>
                <td class="code">{error.route}</td>
                <td>
                  <span class="code">{error.code}</span> {error.message}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

export function Admin() {
  return (
    <section class="admin">
      <div class="headline">
        <h1>{pageTexts.value.admin.title}</h1>
      </div>
      <div class="columns">
        <StatusPart />
        <UsagePart />
      </div>
      <ErrorsPart />
      <Tokens />
    </section>
  );
}
