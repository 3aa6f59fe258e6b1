// Tasks for agents: all of them, or the progress of one.
import { useState } from "preact/hooks";
import { call } from "../api/connect";
import { useAnswer } from "../api/use-answer";
import { pageTexts } from "../app/page-texts";
import { formatTime } from "../app/question";
import { formatDuration } from "../units";
import { change, param } from "../url";
import { NewTask } from "./new-task";
import { Failure } from "./notice";
import { Pager } from "./pager";
import { OneTask } from "./one-task";

export interface Task {
  taskId: string;
  kind: string;
  service?: string;
  startMs?: string;
  durationMs?: string;
  state?: string;
  stateReason?: string;
  origin?: string;
  instance?: string;
  process?: string;
  instances?: string[];
  endpoint?: string;
  events?: string[];
  causes?: { message?: string }[];
}

interface Listed {
  tasks?: Task[];
  nextPageToken?: string;
}

export function Tasks() {
  return param("id") === "" ? <AllTasks /> : <OneTask key={param("id")} id={param("id")} />;
}

function AllTasks() {
  const words = pageTexts.value;
  const page = param("page");
  const [isNew, setIsNew] = useState(false);
  const listed = useAnswer(`tasks ${page}`, (abort) => call<Listed>("hearth.v1.TaskService/ListTasks", { pageToken: page }, abort));
  const tasks = listed.value?.tasks ?? [];
  return (
    <section aria-busy={listed.isLoading}>
      <div class="headline">
        <h1>{words.tasks.title}</h1>
        <button type="button" class="primary" aria-expanded={isNew} onClick={() => setIsNew(!isNew)}>
          {words.tasks.create}
        </button>
      </div>
      <Failure error={listed.error} />
      {isNew && <NewTask />}
      {listed.value && tasks.length === 0 && <p class="muted">{words.tasks.none}</p>}
      {tasks.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">{words.tasks.started}</th>
              <th scope="col">{words.service}</th>
              <th scope="col">{words.tasks.kind}</th>
              <th scope="col" class="number">
                {words.duration}
              </th>
              <th scope="col">{words.tasks.state}</th>
            </tr>
          </thead>
          <tbody>
            {tasks.map((task) => (
              <tr key={task.taskId}>
                <th scope="row">
                  <button type="button" class="plain" onClick={() => change({ id: task.taskId })}>
                    {formatTime(Number(task.startMs ?? 0))}
                  </button>
                </th>
                <td>{task.service}</td>
                <td>{words.tasks.kinds[task.kind] ?? task.kind}</td>
                <td class="number">{formatDuration(Number(task.durationMs ?? 0))}</td>
                <td title={task.stateReason}>{words.tasks.states[task.state ?? ""] ?? task.state}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Pager next={listed.value?.nextPageToken} />
    </section>
  );
}
