// A form of one column. What cannot be started says why beside the button.
import { useState } from "preact/hooks";
import { call, refreshes } from "../api/connect";
import { useAnswer } from "../api/use-answer";
import { pageTexts } from "../app/page-texts";
import { change } from "../url";
import { Failure } from "./notice";
import type { Task } from "./tasks";

const KINDS = ["TASK_KIND_ON_CPU", "TASK_KIND_OFF_CPU", "TASK_KIND_TRACE", "TASK_KIND_ASYNC_PROFILER", "TASK_KIND_PPROF"];
const EVENTS: Record<string, string[]> = {
  TASK_KIND_ASYNC_PROFILER: ["cpu", "wall", "lock", "alloc", "ctimer", "itimer"],
  TASK_KIND_PPROF: ["cpu", "heap", "block", "mutex", "goroutine", "threadcreate", "allocs"],
};
// Snapshots of the present, and rates of an event: what the agent takes besides a duration.
const WITHOUT_DURATION = ["heap", "goroutine", "threadcreate", "allocs"];
const WITH_RATE = ["block", "mutex"];
const MINUTE_MS = 60_000;

interface Prepared {
  canBeProfiled?: boolean;
  processCount?: number;
  reason?: string;
}

interface Draft {
  kind: string;
  service: string;
  minutes: number;
  instances: string;
  event: string;
  endpoint: string;
  slowerThanMs: number;
  everyMs: number;
  samples: number;
}

function messageOf(draft: Draft): object {
  const base = { kind: draft.kind, service: draft.service.trim() };
  const durationMs = String(draft.minutes * MINUTE_MS);
  if (draft.kind === "TASK_KIND_TRACE") {
    const { slowerThanMs: minDurationMs, everyMs: dumpPeriodMs, samples: maxSamples } = draft;
    return { ...base, endpoint: draft.endpoint.trim(), durationMs, minDurationMs, dumpPeriodMs, maxSamples };
  }
  if (EVENTS[draft.kind]) {
    const isPprof = draft.kind === "TASK_KIND_PPROF";
    return {
      ...base,
      instances: listOf(draft.instances),
      events: [draft.event],
      durationMs: isPprof && WITHOUT_DURATION.includes(draft.event) ? "0" : durationMs,
      dumpPeriodMs: isPprof && WITH_RATE.includes(draft.event) ? draft.everyMs : undefined,
    };
  }
  return { ...base, durationMs };
}

function listOf(text: string): string[] {
  return text.split(",").map((each) => each.trim()).filter((each) => each !== "");
}

// Why the task cannot be started; empty if it can, as far as anybody knows before the server decides.
function obstacle(draft: Draft, prepared?: Prepared): string {
  const words = pageTexts.value.tasks;
  if (draft.service.trim() === "") {
    return words.needService;
  }
  if (EVENTS[draft.kind]) {
    return listOf(draft.instances).length === 0 ? words.needInstances : "";
  }
  if (draft.kind === "TASK_KIND_TRACE") {
    return draft.endpoint.trim() === "" ? words.needEndpoint : "";
  }
  return prepared && !prepared.canBeProfiled ? (prepared.reason ?? "") : "";
}

export function NewTask() {
  const words = pageTexts.value;
  const [draft, setDraft] = useState<Draft>({
    kind: KINDS[0], service: "", minutes: 5, instances: "", event: "cpu", endpoint: "", slowerThanMs: 100, everyMs: 20, samples: 5,
  });
  const [error, setError] = useState<Error>();
  const set = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const isTrace = draft.kind === "TASK_KIND_TRACE";
  const events = EVENTS[draft.kind];
  const isOfProcesses = !isTrace && !events;

  const service = draft.service.trim();
  const prepared = useAnswer(isOfProcesses && service !== "" ? service : null, (abort) =>
    call<Prepared>("hearth.v1.TaskService/PrepareTask", { service }, abort),
  );
  const why = obstacle(draft, prepared.value);

  const start = () => {
    call<{ task: Task }>("hearth.v1.TaskService/CreateTask", messageOf(draft)).then(({ task }) => {
      refreshes.value++;
      change({ id: task.taskId });
    }, setError);
  };
  const text = (name: string, value: string, key: "service" | "instances" | "endpoint") => (
    <label>
      {name} <input value={value} onInput={(event) => set({ [key]: event.currentTarget.value })} />
    </label>
  );
  const number = (name: string, key: "minutes" | "slowerThanMs" | "everyMs" | "samples", min: number, max?: number) => (
    <label>
      {name}
      <input type="number" min={min} max={max} value={draft[key]} onChange={(event) => set({ [key]: event.currentTarget.valueAsNumber || min })} />
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
      {text(words.service, draft.service, "service")}
      <label>
        {words.tasks.kind}
        <select value={draft.kind} onChange={(event) => set({ kind: event.currentTarget.value, event: "cpu" })}>
          {KINDS.map((kind) => (
            <option key={kind} value={kind}>
              {words.tasks.kinds[kind]}
            </option>
          ))}
        </select>
      </label>
      {events && (
        <>
          {text(words.tasks.instances, draft.instances, "instances")}
          <label>
            {words.tasks.event}
            <select value={draft.event} onChange={(event) => set({ event: event.currentTarget.value })}>
              {events.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
        </>
      )}
      {isTrace && (
        <>
          {text(words.tasks.endpoint, draft.endpoint, "endpoint")}
          {number(words.tasks.slowerThan, "slowerThanMs", 0)}
          {number(words.tasks.every, "everyMs", 10)}
          {number(words.tasks.samples, "samples", 1, 9)}
        </>
      )}
      {number(words.tasks.minutes, "minutes", 1, 15)}
      {why !== "" && <p class="muted">{words.tasks.cannot(why)}</p>}
      {why === "" && isOfProcesses && prepared.value && <p class="muted">{words.tasks.matching(String(prepared.value.processCount ?? 0))}</p>}
      <Failure error={prepared.error ?? error} />
      <button type="submit" class="primary" disabled={why !== ""}>
        {words.tasks.start}
      </button>
    </form>
  );
}
