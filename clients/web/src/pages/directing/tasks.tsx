// Tasks for agents: all of them, or the progress of one.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { PageLink } from "../../app/page-link";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { formatDuration } from "../../units";
import { change, param } from "../../url";
import { NewTask } from "./new-task";
import { Failure } from "../notice";
import { Pager } from "../pager";
import { OneTask } from "./one-task";
import { ServiceField } from "./service-field";
import type { Cause } from "./policy-words";
import { TaskLinks } from "./task-links";
import { Rows } from "../rows";
import "./directing.css";

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
  causes?: Cause[];
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
  const isNew = param("new") === "1";
  const only = param("only");
  const listed = useAnswer(`${only} ${page}`, (abort) =>
    call<Listed>("hearth.v1.TaskService/ListTasks", { service: only, pageToken: page }, abort),
  );
  const tasks = listed.value?.tasks ?? [];
  return (
    <section aria-busy={listed.isLoading}>
      <div class="headline">
        <h1>{words.tasks.title}</h1>
        <button type="button" class="primary" aria-expanded={isNew} onClick={() => change({ new: isNew ? "" : "1" })}>
          {words.tasks.create}
        </button>
        <ServiceField
          value={only}
          aria-label={directingTexts.value.tasks.filter}
          placeholder={directingTexts.value.tasks.filter}
          onChange={(event) => change({ only: event.currentTarget.value.trim(), page: "" })}
        />
      </div>
      <Failure error={listed.error} />
      {isNew && <NewTask />}
      {listed.value && tasks.length === 0 && <p class="muted">{only === "" ? words.tasks.none : directingTexts.value.tasks.noneOf(only)}</p>}
      {tasks.length > 0 && (
        <Rows heads={[words.tasks.started, words.service, words.tasks.kind, { number: words.duration }, words.tasks.state, null]}>
          {tasks.map((task) => (
            <tr key={task.taskId}>
              <th scope="row">
                <PageLink page="tasks" to={{ id: task.taskId }}>
                  {formatTime(Number(task.startMs ?? 0))}
                </PageLink>
              </th>
              <td class="named">{task.service}</td>
              <td>
                {words.tasks.kinds[task.kind] ?? task.kind}{" "}
                {task.origin === "TASK_ORIGIN_POLICY" && <span class="muted">{directingTexts.value.tasks.byPolicy}</span>}
              </td>
              <td class="number">{formatDuration(Number(task.durationMs ?? 0))}</td>
              <td title={task.stateReason}>{words.tasks.states[task.state ?? ""] ?? task.state}</td>
              <td>
                <TaskLinks task={task} />
              </td>
            </tr>
          ))}
        </Rows>
      )}
      <Pager next={listed.value?.nextPageToken} />
    </section>
  );
}
