// What a trace or a span cost, and which traces cost most.
import { useState } from "preact/hooks";
import { ApiError, call } from "../../api/connect";
import type { Spans } from "../../api/functions";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { chooseType, rangeKey, selector, span, typeName, useProfileTypes, type ProfileType } from "../../app/question";
import { formatCount, formatValue } from "../../units";
import { change, param } from "../../url";
import { Failure } from "../notice";
import { ShareCell } from "../share-cell";
import { FoundTrace, type Lookup } from "./trace";

const MAX_ROWS = 50;

const SPAN_ID_LENGTH = 16;

// An id is a trace's or a span's, and people paste either.
async function lookUp(id: string, abort: AbortSignal): Promise<Lookup | null> {
  const options = { maxProfiles: "1" };
  const first = async (method: string, message: object) => {
    try {
      const answer = await call<{ results?: Lookup[] }>("hearth.v1.TraceProfileService/" + method, message, abort);
      return answer.results?.[0] ?? null;
    } catch (error) {
      if (error instanceof ApiError && error.code === "not_found") {
        return { reason: error.message };
      }
      throw error;
    }
  };
  const trace = await first("LookupTrace", { traces: [{ traceId: id }], options });
  const isFound = (lookup: Lookup | null) => (lookup?.types ?? []).length + (lookup?.stored ?? []).length > 0;
  if (isFound(trace)) {
    return trace;
  }
  const single = await first("LookupSpan", { spans: [{ spanId: id }], options });
  return isFound(single) || id.length <= SPAN_ID_LENGTH ? single : trace;
}

function TopTraces({ type }: { type: ProfileType }) {
  const words = pageTexts.value;
  const top = useAnswer(`${rangeKey.value} ${type.ID} ${selector.value}`, (abort) =>
    call<Spans>(
      "hearth.v1.TraceProfileService/TopSpans",
      {
        selection: {
          profileType: type.ID,
          labelSelector: selector.value,
          start: String(Math.floor(span.value.startMs)),
          end: String(Math.floor(span.value.endMs)),
        },
        by: "SPANS_BY_TRACE",
        limit: String(MAX_ROWS),
      },
      abort,
    ),
  );
  const { rows = [], total = "0", unlabelled = "0" } = top.value ?? {};
  return (
    <section aria-busy={top.isLoading}>
      <h2>{words.traces.top(typeName(type))}</h2>
      <Failure error={top.error} />
      {top.value && rows.length === 0 && <p class="muted">{words.traces.noTraces}</p>}
      {rows.length > 0 && (
        <div class="rows">
          <table class="narrow">
            <thead>
              <tr>
                <th scope="col">{words.traces.trace}</th>
                <th scope="col">{words.service}</th>
                <th scope="col">{words.traces.name}</th>
                <th scope="col" class="number">
                  {words.traces.spans}
                </th>
                <th scope="col" class="number">
                  {words.value}
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.traceId}>
                  <th scope="row">
                    <button type="button" class="plain code" onClick={() => change({ id: row.traceId ?? "", type: type.ID, span: "" })}>
                      {row.traceId}
                    </button>
                  </th>
                  <td class="named" title={row.service}>
                    {row.service}
                  </td>
                  <td class="cut">{row.endpoint || row.name}</td>
                  <td class="number">{formatCount(Number(row.spanCount ?? 0))}</td>
                  <ShareCell value={Number(row.value ?? 0)} total={Number(total)} unit={type.sampleUnit} />
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {rows.length > 0 && Number(unlabelled) > 0 && (
        <p class="muted">{words.traces.unlabelled(formatValue(Number(unlabelled), type.sampleUnit))}</p>
      )}
    </section>
  );
}

function IdForm({ id }: { id: string }) {
  const [text, setText] = useState(id);
  const words = pageTexts.value.traces;
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault();
        change({ id: text.trim(), span: "", zoom: "", search: "" });
      }}
    >
      <input
        class="code wide"
        aria-label={words.id}
        placeholder={words.id}
        value={text}
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit" class="primary">
        {words.find}
      </button>
    </form>
  );
}

export function Traces() {
  const id = param("id");
  const types = useProfileTypes();
  const type = chooseType(types.value ?? []);
  const found = useAnswer(id === "" ? null : id, (abort) => lookUp(id, abort));
  const words = pageTexts.value;
  return (
    <section aria-busy={found.isLoading}>
      <div class="headline">
        <h1>{words.traces.title}</h1>
        <IdForm key={id} id={id} />
        {id !== "" && (
          <button type="button" onClick={() => change({ id: "", span: "", zoom: "", search: "" })}>
            {words.back}
          </button>
        )}
      </div>
      <Failure error={types.error ?? found.error} />
      {id === "" && type && <TopTraces type={type} />}
      {id !== "" && found.value && <FoundTrace lookup={found.value} />}
      {id !== "" && found.value === null && <p class="note">{words.traces.none}</p>}
    </section>
  );
}
