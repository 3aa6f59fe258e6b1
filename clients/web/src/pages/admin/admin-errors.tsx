// Uploads that were refused. Many clients ignore the answer to an upload, so this is where it is seen.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { formatAgo } from "../../app/ago";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { Said } from "../../app/said";
import { formatCount, formatValue } from "../../units";
import { change, param } from "../../url";
import { Failure } from "../notice";
import { Rows } from "../rows";

const MAX_SHOWN = 200;

interface IngestError {
  lastMs?: string;
  firstMs?: string;
  uploads?: string;
  client?: string;
  route?: string;
  code?: string;
  message?: string;
  bodyBytes?: string;
  bodyHash?: string;
}

function When({ error }: { error: IngestError }) {
  const words = pageTexts.value.admin;
  const [first, last] = [Number(error.firstMs ?? 0), Number(error.lastMs ?? 0)];
  return (
    <>
      {formatAgo(last)}
      <div class="muted">{first === last ? formatTime(last) : words.sinceFirst(formatTime(first))}</div>
    </>
  );
}

export function IngestErrors() {
  const words = pageTexts.value.admin;
  const [client, route] = [param("client"), param("route")];
  const answer = useAnswer(`ingest errors ${client} ${route}`, (abort) =>
    call<{ errors?: IngestError[] }>("hearth.v1.AdminService/IngestErrors", { client, route, limit: String(MAX_SHOWN) }, abort),
  );
  const errors = answer.value?.errors ?? [];
  const chosen = [client, route].filter((each) => each !== "").join(" ");
  return (
    <section aria-busy={answer.isLoading}>
      <p>{words.errorsHint}</p>
      <Failure error={answer.error} />
      {chosen !== "" && (
        <p class="tabs">
          <span class="code">{chosen}</span>
          <button type="button" onClick={() => change({ client: "", route: "" })}>
            {words.showAll}
          </button>
        </p>
      )}
      {answer.value && errors.length === 0 && <p class="muted">{words.noErrors}</p>}
      {errors.length > 0 && (
        <Rows shape="tall" heads={[words.last, { number: words.uploads }, words.client, words.reason, { number: words.lastBody }]}>
          {errors.map((error) => (
            <tr key={`${error.lastMs} ${error.route} ${error.message}`}>
              <th scope="row">
                <When error={error} />
              </th>
              <td class="number">{formatCount(Number(error.uploads ?? 0))}</td>
              <td>
                <button type="button" class="plain" title={words.onlyThese} onClick={() => change({ client: error.client ?? "" })}>
                  {error.client}
                </button>
                <br />
                <button type="button" class="plain muted code" title={words.onlyThese} onClick={() => change({ route: error.route ?? "" })}>
                  {error.route}
                </button>
              </td>
              <td class="wrapped">
                <span class="code">{error.code}</span> <Said text={error.message} />
              </td>
              <td class="number" title={error.bodyHash && `XXH3-64 ${error.bodyHash}`}>
                {formatValue(Number(error.bodyBytes ?? 0), "bytes")}
              </td>
            </tr>
          ))}
        </Rows>
      )}
      {errors.length === MAX_SHOWN && <p class="note">{words.latestOnly(formatCount(MAX_SHOWN))}</p>}
    </section>
  );
}
