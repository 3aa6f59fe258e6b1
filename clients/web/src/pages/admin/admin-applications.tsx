// Services as their owners see them, and the rules that decide whose profiles are accepted.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { formatAgo } from "../../app/ago";
import { PageLink } from "../../app/page-link";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import type { Who } from "../../app/who";
import { formatSelector } from "../../selector";
import { formatCount } from "../../units";
import { change, param } from "../../url";
import type { PartProps } from "./admin";
import { Rules } from "./admin-rules";
import { FilterBox, filterText } from "../filter-box";
import { Failure } from "../notice";
import { Confirm, useSending } from "../sending";

const SERVICE = "hearth.v1.ApplicationService/";
const MAX_SHOWN = 200;
const CHOICES = ["PROFILING_UNSPECIFIED", "PROFILING_ON", "PROFILING_OFF"];

export interface Application {
  name: string;
  owner?: string;
  description?: string;
  profiling?: string;
  approved?: boolean;
  firstSeenMs?: string;
  lastSeenMs?: string;
  updatedBy?: string;
  updatedAtMs?: string;
}

// Also says of every service when it last sent a profile.
export function askApplications(abort: AbortSignal): Promise<Application[]> {
  return call<{ applications?: Application[] }>(SERVICE + "List", {}, abort).then((answer) => answer.applications ?? []);
}

function Edit({ application, who }: { application: Application; who: Who }) {
  const words = pageTexts.value.admin;
  const { error, isSending, send } = useSending();
  const save = async (form: HTMLFormElement) => {
    const fields = new FormData(form);
    const message = { name: application.name, owner: fields.get("owner"), description: fields.get("description"), updatedBy: who.name };
    if (await send(SERVICE + "Set", message)) {
      change({ app: "" });
    }
  };
  const changedAt = Number(application.updatedAtMs ?? 0);
  return (
    <form
      class="column"
      onSubmit={(event) => {
        event.preventDefault();
        void save(event.currentTarget);
      }}
    >
      <h2>{application.name}</h2>
      <label>
        {words.owner} <input name="owner" defaultValue={application.owner} />
      </label>
      <label>
        {words.description} <input name="description" defaultValue={application.description} />
      </label>
      {changedAt > 0 && <p class="muted">{words.changedBy(application.updatedBy || "anonymous", formatTime(changedAt))}</p>}
      <Failure error={error} />
      <p class="tabs">
        <button type="submit" class="primary" disabled={isSending}>
          {words.save}
        </button>
        <button type="button" onClick={() => change({ app: "" })}>
          {words.leave}
        </button>
      </p>
    </form>
  );
}

interface RowProps {
  application: Application;
  mayChange: boolean;
  set(name: string, part: Partial<Application>): void;
  forget(name: string): void;
}

function Row({ application, mayChange, set, forget }: RowProps) {
  const words = pageTexts.value.admin;
  const { name, owner, description, profiling = CHOICES[0], approved, lastSeenMs } = application;
  const seenMs = Number(lastSeenMs ?? 0);
  const q = formatSelector([{ name: "service_name", op: "=", value: name }]);
  return (
    <tr>
      <th scope="row">
        <PageLink page="profile" to={{ q }}>
          {name}
        </PageLink>
        {description && <div class="muted">{description}</div>}
      </th>
      <td>{owner}</td>
      <td title={seenMs > 0 ? formatTime(seenMs) : ""}>{seenMs > 0 ? formatAgo(seenMs) : words.never}</td>
      <td>
        <select
          aria-label={words.profilingOf(name)}
          disabled={!mayChange}
          value={profiling}
          onChange={(event) => set(name, { profiling: event.currentTarget.value })}
        >
          {CHOICES.map((choice) => (
            <option key={choice} value={choice}>
              {words.profilings[choice]}
            </option>
          ))}
        </select>
      </td>
      <td>{approved ? words.approved : <span class="note">{words.notApproved}</span>}</td>
      {mayChange && (
        <td class="actions">
          <button type="button" aria-label={`${approved ? words.withdraw : words.approve}: ${name}`} onClick={() => set(name, { approved: !approved })}>
            {approved ? words.withdraw : words.approve}
          </button>
          <button type="button" aria-label={`${words.edit}: ${name}`} onClick={() => change({ app: name })}>
            {words.edit}
          </button>
          <Confirm label={words.forget} really={words.forgetReally} of={name} onConfirm={() => forget(name)} />
        </td>
      )}
    </tr>
  );
}

export function Applications({ who, mayChange }: PartProps) {
  const words = pageTexts.value.admin;
  const answer = useAnswer("applications", askApplications);
  const { error, send } = useSending();
  const applications = answer.value ?? [];
  const filter = filterText();
  const matching = applications.filter(({ name, owner = "" }) => `${name}\n${owner}`.toLowerCase().includes(filter));
  const edited = applications.find(({ name }) => name === param("app"));
  return (
    <>
      <section aria-busy={answer.isLoading}>
        <p>{words.applicationsHint}</p>
        <Failure error={answer.error ?? error} />
        {edited && mayChange && <Edit key={edited.name} application={edited} who={who} />}
        {applications.length > 0 && <FilterBox label={words.filterApplications} />}
        {answer.value && applications.length === 0 && <p class="muted">{words.noApplications}</p>}
        {applications.length > 0 && matching.length === 0 && <p class="muted">{words.noneMatches}</p>}
        {matching.length > 0 && (
          <div class="rows">
            <table>
              <thead>
                <tr>
                  <th scope="col">{words.application}</th>
                  <th scope="col">{words.owner}</th>
                  <th scope="col">{words.lastProfile}</th>
                  <th scope="col">{words.profiling}</th>
                  <th scope="col">{words.approval}</th>
                  {mayChange && <td />}
                </tr>
              </thead>
              <tbody>
                {matching.slice(0, MAX_SHOWN).map((application) => (
                  <Row
                    key={application.name}
                    application={application}
                    mayChange={mayChange}
                    set={(name, part) => void send(SERVICE + "Set", { name, ...part, updatedBy: who.name })}
                    forget={(name) => void send(SERVICE + "Delete", { name })}
                  />
                ))}
              </tbody>
            </table>
          </div>
        )}
        {matching.length > MAX_SHOWN && <p class="note">{words.onlyFirst(formatCount(MAX_SHOWN), formatCount(matching.length))}</p>}
      </section>
      <Rules who={who} mayChange={mayChange} />
    </>
  );
}
