// One task: which instances were told and answered, why nothing arrived, and the results.
import { useEffect, useState } from "preact/hooks";
import { call, refreshes } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { PageLink } from "../../app/page-link";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { Said } from "../../app/said";
import { formatDuration } from "../../units";
import { go } from "../../url";
import { Failure } from "../notice";
import { causeText } from "./policy-words";
import { TaskLinks } from "./task-links";
import { TaskResult } from "./task-result";
import type { Task } from "./tasks";
import { Rows } from "../rows";
import "./directing.css";

const SERVICE = "hearth.v1.TaskService/";
const LOOK_AGAIN_MS = 3000;
const OPEN_STATES = ["NOT_STARTED", "WAITING_FOR_AGENT", "NO_PROCESS_MATCHES", "UNSUPPORTED", "NOTIFIED", "RUNNING"];
const FINE_STATES = ["NOT_STARTED", "NOTIFIED", "RUNNING", "FINISHED", "CANCELLED"];

interface LogEntry {
  instance?: string;
  processId?: string;
  event?: string;
  atMs?: string;
  message?: string;
}

interface Target {
  instance?: string;
  processId?: string;
  process?: string;
  state?: string;
  reason?: string;
}

interface Got {
  task?: Task;
  log?: LogEntry[];
  targets?: Target[];
}

function bareState(state = ""): string {
  return state.replace("TASK_STATE_", "");
}

// After its end, a task does not change any more.
function canChange(task: Task): boolean {
  return OPEN_STATES.includes(bareState(task.state));
}

// said: the reason of the whole task, which is not repeated for each target.
function Targets({ targets, log, said }: { targets: Target[]; log: LogEntry[]; said?: string }) {
  const words = directingTexts.value;
  const { tasks } = pageTexts.value;
  const timeOf = (target: Target, isTold: boolean) => {
    const entry = log.find(
      ({ instance, processId = "", event }) =>
        instance === target.instance && processId === (target.processId ?? "") && (event === "TASK_EVENT_NOTIFIED") === isTold,
    );
    return entry && formatTime(Number(entry.atMs ?? 0));
  };
  return (
    <>
      <h2>{tasks.targets}</h2>
      {targets.length === 0 && <p class="muted">{tasks.noTargets}</p>}
      {targets.length > 0 && (
        <Rows heads={[words.instance, words.policies.process, tasks.state, words.tasks.told, words.tasks.answered, words.tasks.reason]}>
          {targets.map((target) => (
            <tr key={`${target.instance} ${target.processId}`}>
              <th scope="row" class="named code">
                {target.instance}
              </th>
              <td class="named code">{target.process}</td>
              <td>{tasks.states[target.state ?? ""] ?? target.state}</td>
              <td>{timeOf(target, true)}</td>
              <td>{timeOf(target, false)}</td>
              <td class="reason muted">{target.reason !== said && <Said text={target.reason} />}</td>
            </tr>
          ))}
        </Rows>
      )}
      {log.length > 0 && (
        <details>
          <summary>{words.tasks.log}</summary>
          <ul class="plain-list">
            {log.map((entry, i) => (
              <li key={i}>
                {formatTime(Number(entry.atMs ?? 0))} <span class="code">{entry.instance}</span> {tasks.events[entry.event ?? ""] ?? entry.event}{" "}
                <span class="muted">
                  <Said text={entry.message} />
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

export function OneTask({ id }: { id: string }) {
  const words = directingTexts.value.tasks;
  const { back, tasks } = pageTexts.value;
  const [note, setNote] = useState("");
  const [error, setError] = useState<Error>();
  // The page asks again by itself. A counter of its own keeps other answers from being asked again and dimmed.
  const [round, setRound] = useState(0);
  const got = useAnswer(`${id} ${round}`, (abort) => call<Got>(SERVICE + "GetTask", { taskId: id }, abort));
  const { task, log = [], targets = [] } = got.value ?? {};
  const isOpen = task !== undefined && canChange(task);

  useEffect(() => {
    if (isOpen) {
      const timer = setInterval(() => setRound((old) => old + 1), LOOK_AGAIN_MS);
      return () => clearInterval(timer);
    }
    return undefined;
  }, [isOpen]);

  const change = (method: string) => {
    call<{ note?: string }>(SERVICE + method, { taskId: id }).then((answer) => {
      setError(undefined);
      setNote(answer.note ?? "");
      refreshes.value++;
    }, setError);
  };
  return (
    <section>
      <div class="headline">
        <h1>{task ? words.of(tasks.kinds[task.kind] ?? task.kind, task.service ?? "") : tasks.title}</h1>
        {task && (
          <span class="figure" role="status">
            {tasks.states[task.state ?? ""] ?? task.state}
          </span>
        )}
        {isOpen && task.kind === "TASK_KIND_NETWORK" && (
          <button type="button" onClick={() => change("KeepAliveTask")}>
            {words.keep}
          </button>
        )}
        {isOpen && (
          <button type="button" onClick={() => change("CancelTask")}>
            {tasks.cancel}
          </button>
        )}
        <button type="button" onClick={() => go("tasks", {})}>
          {back}
        </button>
        {task && <TaskLinks task={task} />}
      </div>
      <Failure error={got.error ?? error} />
      {task && (
        <>
          <p>
            {tasks.ran(formatTime(Number(task.startMs ?? 0)), formatDuration(Number(task.durationMs ?? 0)))}{" "}
            <span class={FINE_STATES.includes(bareState(task.state)) ? "" : "note"}>
              <Said text={task.stateReason} />
            </span>
          </p>
          {task.origin === "TASK_ORIGIN_POLICY" && (
            <p>
              {words.byPolicy}: {(task.causes ?? []).map(causeText).join("; ")}{" "}
              <PageLink page="policies" to={{ service: task.service ?? "" }}>
                {directingTexts.value.links.policy}
              </PageLink>
            </p>
          )}
          {note !== "" && (
            <p class="note">
              <Said text={note} />
            </p>
          )}
          <Targets targets={targets} log={log} said={task.stateReason} />
          {task.kind !== "TASK_KIND_NETWORK" && <TaskResult task={task} round={round} isOpen={isOpen} />}
        </>
      )}
    </section>
  );
}
