// The progress of a task: who was told, who answered, and why nothing arrived.
import { useEffect, useState } from "preact/hooks";
import { call, refreshes } from "../api/connect";
import { useAnswer } from "../api/use-answer";
import { pageTexts } from "../app/page-texts";
import { formatTime } from "../app/question";
import { formatDuration } from "../units";
import { change } from "../url";
import { Failure } from "./notice";
import type { Task } from "./tasks";

const LOOK_AGAIN_MS = 3000;
const OPEN_STATES = ["NOT_STARTED", "WAITING_FOR_AGENT", "NO_PROCESS_MATCHES", "NOTIFIED", "RUNNING"];

interface Got {
  task?: Task;
  log?: { instance?: string; event?: string; atMs?: string; message?: string }[];
  targets?: { instance?: string; processId?: string; process?: string; state?: string; reason?: string }[];
}

export function OneTask({ id }: { id: string }) {
  const words = pageTexts.value;
  const [note, setNote] = useState("");
  const [error, setError] = useState<Error>();
  const got = useAnswer(id, (abort) => call<Got>("hearth.v1.TaskService/GetTask", { taskId: id }, abort));
  const { task, log = [], targets = [] } = got.value ?? {};
  const isOpen = task !== undefined && OPEN_STATES.includes((task.state ?? "").replace("TASK_STATE_", ""));

  useEffect(() => {
    if (isOpen) {
      const timer = setInterval(() => refreshes.value++, LOOK_AGAIN_MS);
      return () => clearInterval(timer);
    }
    return undefined;
  }, [isOpen]);

  const cancel = () => {
    call<{ note?: string }>("hearth.v1.TaskService/CancelTask", { taskId: id }).then((answer) => {
      setNote(answer.note ?? "");
      refreshes.value++;
    }, setError);
  };
  return (
    <section>
      <div class="headline">
        <h1>{task ? `${words.tasks.kinds[task.kind] ?? task.kind}: ${task.service ?? ""}` : words.tasks.title}</h1>
        {task && <span class="figure">{words.tasks.states[task.state ?? ""] ?? task.state}</span>}
        {isOpen && (
          <button type="button" onClick={cancel}>
            {words.tasks.cancel}
          </button>
        )}
        <button type="button" onClick={() => change({ id: "" })}>
          {words.back}
        </button>
      </div>
      <Failure error={got.error ?? error} />
      {task && (
        <p>
          {formatTime(Number(task.startMs ?? 0))}, {formatDuration(Number(task.durationMs ?? 0))}. {task.stateReason}
        </p>
      )}
      {note !== "" && <p class="note">{note}</p>}
      <h2>{words.tasks.targets}</h2>
      {targets.length === 0 && <p class="muted">{words.tasks.noTargets}</p>}
      <ul class="plain-list">
        {targets.map((target) => (
          <li key={`${target.instance} ${target.processId}`}>
            <span class="code">{[target.instance, target.process].filter(Boolean).join(" ")}</span>{" "}
            {words.tasks.states[target.state ?? ""] ?? target.state} <span class="muted">{target.reason}</span>
          </li>
        ))}
      </ul>
      {log.length > 0 && <h2>{words.tasks.progress}</h2>}
      <ul class="plain-list">
        {log.map((entry, i) => (
          <li key={i}>
            {formatTime(Number(entry.atMs ?? 0))} <span class="code">{entry.instance}</span>{" "}
            {words.tasks.events[entry.event ?? ""] ?? entry.event} <span class="muted">{entry.message}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
