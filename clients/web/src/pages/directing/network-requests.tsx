// Requests that an agent sampled, the slowest first, and one of them with what was captured of it.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { PageLink } from "../../app/page-link";
import { formatTime, rangeKey } from "../../app/question";
import { visibleName } from "../../flame/names";
import { nanosecondsBetween } from "../traces/trace-tree";
import { formatCount, formatDuration } from "../../units";
import { change } from "../../url";
import type { NetworkCall } from "./network-calls";
import { Failure, Notes } from "../notice";
import { Rows } from "../rows";

const SERVICE = "hearth.v1.NetworkService/";
const MOST = 50;

interface SampledRequest {
  requestId: string;
  traceId?: string;
  uri?: string;
  reason?: string;
  latencyMs?: number;
  status?: number;
  atMs?: string;
  eventCount?: number;
}

interface GotRequest {
  request?: SampledRequest;
  events?: { event?: string; startNs?: string; endNs?: string; tags?: { key: string; value?: string }[] }[];
  notes?: string[];
}

// The tag of agents with heads and bodies.
const BODY = "data_content";

export function Requests({ within, chosen }: { within: object; chosen?: NetworkCall }) {
  const words = directingTexts.value.network;
  const answer = useAnswer(`${rangeKey.value} ${JSON.stringify(within)} ${chosen?.callId ?? ""}`, (abort) =>
    call<{ requests?: SampledRequest[] }>(SERVICE + "ListSampledRequests", { ...within, callId: chosen?.callId ?? "", limit: MOST }, abort),
  );
  const requests = answer.value?.requests ?? [];
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{chosen ? words.requestsOf : words.requests}</h2>
      <Failure error={answer.error} />
      {answer.value && requests.length === 0 && <p class="muted">{words.noRequests}</p>}
      {requests.length > 0 && (
        <Rows heads={[words.uri, words.reason, { number: words.latency }, { number: words.status }, { number: words.captured }, words.trace]}>
          {requests.map((request) => (
            <tr key={request.requestId}>
              <th scope="row" class="named">
                <button type="button" class="plain code" title={visibleName(request.uri ?? "")} onClick={() => change({ request: request.requestId })}>
                  {visibleName(request.uri ?? "")}
                </button>
              </th>
              <td>{words.reasons[request.reason ?? ""] ?? request.reason}</td>
              <td class="number">{formatDuration(request.latencyMs ?? 0)}</td>
              <td class="number">{request.status}</td>
              <td class="number">{formatCount(request.eventCount ?? 0)}</td>
              <td class="named code">
                <PageLink page="traces" to={{ id: request.traceId ?? "" }}>
                  {request.traceId}
                </PageLink>
              </td>
            </tr>
          ))}
        </Rows>
      )}
    </section>
  );
}

export function OneRequest({ id }: { id: string }) {
  const words = directingTexts.value.network;
  const got = useAnswer(id, (abort) => call<GotRequest>(SERVICE + "GetSampledRequest", { requestId: id }, abort));
  const { request, events = [], notes = [] } = got.value ?? {};
  return (
    <section aria-busy={got.isLoading}>
      <div class="headline">
        <h1>{words.request}</h1>
        {request && <span class="figure">{formatDuration(request.latencyMs ?? 0)}</span>}
        <button type="button" onClick={() => change({ request: "" })}>
          {words.backToNetwork}
        </button>
      </div>
      <Failure error={got.error} />
      {request && (
        <p class="whole">
          <span class="code">{visibleName(request.uri ?? "")}</span>, {words.status} {request.status}, {formatTime(Number(request.atMs ?? 0))}.{" "}
          <PageLink page="traces" to={{ id: request.traceId ?? "" }}>
            {words.trace} {request.traceId}
          </PageLink>
        </p>
      )}
      <Notes notes={notes} />
      {got.value && events.length === 0 && <p class="muted">{words.noEvents}</p>}
      {events.map(({ event, startNs, endNs, tags = [] }, i) => (
        <section key={i} class="facts">
          <h2>
            {event} <span class="muted">{formatDuration(nanosecondsBetween(startNs, endNs) / 1e6)}</span>
          </h2>
          <dl class="keys">
            {tags
              .filter(({ key }) => key !== BODY)
              .map(({ key, value }) => (
                <>
                  <dt class="muted">{key}</dt>
                  <dd class="code">{visibleName(value ?? "")}</dd>
                </>
              ))}
          </dl>
          {tags
            .filter(({ key }) => key === BODY)
            .map(({ value = "" }) => (
              <pre class="code snippet" tabIndex={0}>
                {value.split(/\r?\n/).map(visibleName).join("\n")}
              </pre>
            ))}
        </section>
      ))}
    </section>
  );
}
