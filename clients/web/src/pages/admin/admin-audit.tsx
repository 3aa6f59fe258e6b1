// What was done, by whom, and what was refused: the latest first.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { formatTime, rangeKey, rangeName, span } from "../../app/question";
import { Said } from "../../app/said";
import { change, param } from "../../url";
import { Failure } from "../notice";
import { Pager } from "../pager";
import { Rows } from "../rows";

const PAGE_SIZE = 100;
const FILTERS = ["subject", "action", "outcome", "tenant"] as const;

interface Event {
  id: string;
  atMs?: string;
  tenant?: string;
  subject?: string;
  address?: string;
  action?: string;
  object?: string;
  outcome?: string;
  message?: string;
}

function Row({ event }: { event: Event }) {
  const words = pageTexts.value.admin;
  const only = (name: (typeof FILTERS)[number], value = "") => (
    <button type="button" class="plain" title={words.onlyThese} onClick={() => change({ [name]: value, page: "" })}>
      {value}
    </button>
  );
  const isOk = event.outcome === "ok";
  return (
    <tr>
      <th scope="row">{formatTime(Number(event.atMs ?? 0))}</th>
      <td>
        {only("subject", event.subject)} <div class="muted code">{event.address}</div>
      </td>
      <td class="code">{only("action", event.action)}</td>
      <td class="code wrapped">{event.object}</td>
      <td>{event.tenant && only("tenant", event.tenant)}</td>
      <td class={event.message ? "wrapped" : ""}>
        <span class={isOk ? "" : "error"}>{event.outcome}</span> <Said text={event.message} />
      </td>
    </tr>
  );
}

export function AuditLog() {
  const words = pageTexts.value.admin;
  const filters = Object.fromEntries(FILTERS.map((name) => [name, param(name)]));
  const page = param("page");
  const key = `${rangeKey.value} ${Object.values(filters).join("\n")} ${page}`;
  const answer = useAnswer(key, (abort) => {
    const range = { fromMs: String(Math.floor(span.value.startMs)), toMs: String(Math.floor(span.value.endMs)) };
    const message = { ...filters, ...range, beforeId: page || "0", limit: String(PAGE_SIZE) };
    return call<{ events?: Event[] }>("hearth.v1.AccessService/AuditLog", message, abort);
  });
  const events = answer.value?.events ?? [];
  return (
    <section aria-busy={answer.isLoading}>
      <form
        class="inline"
        key={key}
        onSubmit={(event) => {
          event.preventDefault();
          const fields = new FormData(event.currentTarget);
          change({ ...Object.fromEntries(FILTERS.map((name) => [name, String(fields.get(name)).trim()])), page: "" });
        }}
      >
        {FILTERS.map((name) => (
          <input key={name} name={name} aria-label={words.audit[name]} placeholder={words.audit[name]} defaultValue={param(name)} />
        ))}
        <button type="submit">{words.find}</button>
      </form>
      <Failure error={answer.error} />
      {answer.value && events.length === 0 && <p class="muted">{words.noEvents(rangeName())}</p>}
      {events.length > 0 && (
        <Rows shape="tall" heads={[pageTexts.value.time, words.audit.subject, words.audit.action, words.object, words.audit.tenant, words.audit.outcome]}>
          {events.map((event) => (
            <Row key={event.id} event={event} />
          ))}
        </Rows>
      )}
      <Pager next={events.length === PAGE_SIZE ? events[PAGE_SIZE - 1].id : undefined} />
    </section>
  );
}
