// A form of one column. A kind of task that is impossible now is disabled and says why.
import { useState } from "preact/hooks";
import { call, refreshes } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { pageTexts } from "../../app/page-texts";
import { inOwnWords } from "../../app/said";
import { draftOf, EVENTS, hasDuration, hasRate, messageOf, TASK_KINDS, type Draft } from "./task-draft";
import { formatCount } from "../../units";
import { address, change, formatList, go, type Params } from "../../url";
import { Failure } from "../notice";
import { ServiceField } from "./service-field";
import type { Task } from "./tasks";

const LANGUAGES: Record<string, string> = { TASK_KIND_ASYNC_PROFILER: "java", TASK_KIND_PPROF: "go" };
const BY_EBPF = ["TASK_KIND_ON_CPU", "TASK_KIND_OFF_CPU", "TASK_KIND_NETWORK"];

interface Prepared {
  canBeProfiled?: boolean;
  processCount?: number;
  reason?: string;
}

interface Instance {
  instance: string;
  properties?: { name: string; value?: string }[];
}

interface Known {
  prepared: Prepared;
  instances: Instance[];
}

async function learn(service: string, abort: AbortSignal): Promise<Known> {
  const [prepared, listed] = await Promise.all([
    call<Prepared>("hearth.v1.TaskService/PrepareTask", { service }, abort),
    call<{ instances?: Instance[] }>("hearth.v1.ProcessService/ListInstances", { service }, abort),
  ]);
  return { prepared, instances: listed.instances ?? [] };
}

// Returns why no task of the kind can run on the service now, or nothing if agents have not said that it cannot.
function impossible(kind: string, { prepared, instances }: Known): string {
  const words = directingTexts.value.tasks;
  if (BY_EBPF.includes(kind)) {
    return prepared.canBeProfiled ? "" : inOwnWords(prepared.reason) || words.notReported;
  }
  if (instances.length === 0) {
    return words.notReported;
  }
  const languages = instances.flatMap(({ properties = [] }) => properties.filter(({ name }) => name === "language").map(({ value = "" }) => value.toLowerCase()));
  const wanted = LANGUAGES[kind];
  return wanted === undefined || languages.length === 0 || languages.includes(wanted) ? "" : words.otherLanguage([...new Set(languages)].join(", "));
}

// Returns which field of the form has to be filled in next.
function missing(draft: Draft): string {
  const words = pageTexts.value.tasks;
  if (draft.service === "") {
    return words.needService;
  }
  if ((EVENTS[draft.kind] || draft.kind === "TASK_KIND_NETWORK") && draft.instances.length === 0) {
    return words.needInstances;
  }
  return draft.kind === "TASK_KIND_TRACE" && draft.endpoint === "" ? words.needEndpoint : "";
}

function Kinds({ draft, known }: { draft: Draft; known?: Known }) {
  const words = pageTexts.value.tasks;
  return (
    <fieldset>
      <legend>{words.kind}</legend>
      {TASK_KINDS.map((kind) => {
        const why = known ? impossible(kind, known) : "";
        return (
          <label key={kind} class="choice">
            <input
              type="radio"
              name="kind"
              checked={kind === draft.kind}
              disabled={why !== ""}
              onChange={() => change({ kind, event: "", instances: kind === "TASK_KIND_NETWORK" ? formatList(draft.instances.slice(0, 1)) : formatList(draft.instances) })}
            />
            <span>
              {words.kinds[kind]}
              {why !== "" && <span class="muted why">{why}</span>}
            </span>
          </label>
        );
      })}
    </fieldset>
  );
}

function Instances({ draft, known }: { draft: Draft; known?: Known }) {
  const isOne = draft.kind === "TASK_KIND_NETWORK";
  // Instances of the address stay, even if no agent has reported them lately.
  const names = [...new Set([...(known?.instances ?? []).map(({ instance }) => instance), ...draft.instances])].sort();
  return (
    <fieldset>
      <legend>{directingTexts.value.instance}</legend>
      {names.map((name) => (
        <label key={name} class="choice">
          <input
            type={isOne ? "radio" : "checkbox"}
            name="instances"
            checked={draft.instances.includes(name)}
            onChange={(event) => {
              const others = isOne ? [] : draft.instances.filter((each) => each !== name);
              change({ instances: formatList(event.currentTarget.checked ? [...others, name] : others) });
            }}
          />
          <span class="code">{name}</span>
        </label>
      ))}
    </fieldset>
  );
}

function Sampling({ draft, number }: { draft: Draft; number(name: string, key: string, value: number, min: number, max?: number): preact.JSX.Element }) {
  const words = directingTexts.value.tasks;
  const flag = (label: string, key: string, isOn: boolean) => (
    <label class="choice">
      <input type="checkbox" checked={isOn} onChange={(event) => change({ [key]: event.currentTarget.checked ? "" : "0" })} />
      <span>{label}</span>
    </label>
  );
  return (
    <fieldset>
      <legend>{words.sampled}</legend>
      {number(words.slower, "slower", draft.slowerThanMs, 0)}
      {flag(words.when4xx, "s4xx", draft.is4xx)}
      {flag(words.when5xx, "s5xx", draft.is5xx)}
      {number(words.bodyBytes, "body", draft.bodyBytes, 0)}
      {draft.bodyBytes > 0 && <p class="note">{words.personal}</p>}
    </fieldset>
  );
}

// Says what the task will do to how many processes or instances.
function effect(draft: Draft, known: Known): string {
  const words = directingTexts.value.tasks;
  if (draft.kind === "TASK_KIND_NETWORK") {
    return words.networkFor;
  }
  const minutes = formatCount(draft.minutes);
  if (BY_EBPF.includes(draft.kind)) {
    return words.askedProcesses(formatCount(known.prepared.processCount ?? 0), minutes);
  }
  const n = draft.kind === "TASK_KIND_TRACE" ? known.instances.length : draft.instances.length;
  return hasDuration(draft) ? words.asked(formatCount(n), minutes) : "";
}

export function NewTask() {
  const words = pageTexts.value;
  const { service = "", kind } = address.value.params;
  const [error, setError] = useState<Error>();
  const asked = useAnswer(service || null, (abort) => learn(service, abort));
  const known = service === "" ? undefined : asked.value;
  // The first kind that is possible is chosen until a person chooses another.
  const possible = known && TASK_KINDS.find((each) => impossible(each, known) === "");
  const draft = draftOf({ ...address.value.params, kind: kind ?? possible ?? "" });
  const why = (known && impossible(draft.kind, known)) || missing(draft);
  const isTrace = draft.kind === "TASK_KIND_TRACE";

  const start = () => {
    call<{ task: Task }>("hearth.v1.TaskService/CreateTask", messageOf(draft)).then(({ task }) => {
      refreshes.value++;
      go("tasks", { id: task.taskId });
    }, setError);
  };
  const set = (params: Params) => {
    setError(undefined);
    change(params);
  };
  const number = (name: string, key: string, value: number, min: number, max?: number) => (
    <label>
      {name}
      <input type="number" min={min} max={max} value={value} onChange={(event) => set({ [key]: String(event.currentTarget.valueAsNumber || min) })} />
    </label>
  );
  return (
    <form
      class="column"
      onSubmit={(event) => {
        event.preventDefault();
        start();
      }}
    >
      <label>
        {words.service}
        <ServiceField value={draft.service} onChange={(event) => set({ service: event.currentTarget.value.trim(), instances: "" })} />
      </label>
      <Kinds draft={draft} known={known} />
      {(EVENTS[draft.kind] || draft.kind === "TASK_KIND_NETWORK") && draft.service !== "" && <Instances draft={draft} known={known} />}
      {EVENTS[draft.kind] && (
        <label>
          {words.tasks.event}
          <select value={draft.event} onChange={(event) => set({ event: event.currentTarget.value })}>
            {EVENTS[draft.kind].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      )}
      {hasRate(draft) && number(words.tasks.every, "every", draft.everyMs, 1)}
      {isTrace && (
        <>
          <label>
            {words.tasks.endpoint} <input value={draft.endpoint} onChange={(event) => set({ endpoint: event.currentTarget.value })} />
          </label>
          {number(words.tasks.slowerThan, "slower", draft.slowerThanMs, 0)}
          {number(words.tasks.every, "every", draft.everyMs, 10)}
          {number(words.tasks.samples, "samples", draft.samples, 1, 9)}
        </>
      )}
      {draft.kind === "TASK_KIND_NETWORK" && <Sampling draft={draft} number={number} />}
      {hasDuration(draft) && number(words.tasks.minutes, "minutes", draft.minutes, 1, 15)}
      <p class="muted" role="status">
        {why !== "" ? words.tasks.cannot(why) : known && effect(draft, known)}
      </p>
      <Failure error={asked.error ?? error} />
      <button type="submit" class="primary" disabled={why !== ""}>
        {words.tasks.start}
      </button>
    </form>
  );
}
