// The results of a task: its own analysis, or the same data as a stored profile of the service.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { pageTexts } from "../../app/page-texts";
import { partsOfType } from "../../app/question";
import { rangeOf, selectorOf } from "./task-places";
import { change, param } from "../../url";
import { MergedFlame } from "../merged";
import { Failure } from "../notice";
import { FilesAnalysis } from "./task-files";
import { RequestsAnalysis } from "./task-requests";
import { StacksAnalysis, type Schedule } from "./task-stacks";
import type { Task } from "./tasks";

const VIEWS = ["analysis", "profile"];
const WITH_SCHEDULES = ["TASK_KIND_ON_CPU", "TASK_KIND_OFF_CPU"];
const WITH_FILES = ["TASK_KIND_ASYNC_PROFILER", "TASK_KIND_PPROF"];

interface StoredProfile {
  id: string;
  profileTypes?: string[];
}

// Chooses nanoseconds before counts, as everywhere on the page.
function firstType(types: string[]): string {
  return types.find((type) => partsOfType(type).unit === "nanoseconds") ?? types[0] ?? "";
}

// Runs may begin before the task does, by the clock of their agent.
function rangeOfRuns(task: Task, schedules: Schedule[]): { from: string; to: string } {
  const { from, to } = rangeOf(task);
  const starts = schedules.map(({ startMs = from }) => Number(startMs));
  const ends = schedules.map(({ endMs = to }) => Number(endMs));
  return { from: String(Math.min(Number(from), ...starts)), to: String(Math.max(Number(to), ...ends)) };
}

function StoredResult({ task, schedules }: { task: Task; schedules: Schedule[] }) {
  const { from, to } = rangeOfRuns(task, schedules);
  // Runs name the profiles that they made. Files do not, so all profiles of their instances are taken.
  const ids = schedules.flatMap(({ profileIds = [] }) => profileIds);
  const selector = selectorOf(ids.length > 0 ? { kind: task.kind, service: task.service } : task);
  const found = useAnswer(`${task.taskId} ${ids.length}`, (abort) =>
    call<{ profiles?: StoredProfile[] }>(
      "hearth.v1.ProfileService/ListProfiles",
      { filter: { labelSelector: selector, start: from, end: to }, pageSize: 1000 },
      abort,
    ),
  );
  const own = (found.value?.profiles ?? []).filter(({ id }) => ids.length === 0 || ids.includes(id));
  const types = [...new Set(own.flatMap(({ profileTypes = [] }) => profileTypes))].sort();
  const type = types.includes(param("type")) ? param("type") : firstType(types);
  return (
    <>
      <p class="muted">{ids.length > 0 ? directingTexts.value.tasks.profileHint : directingTexts.value.tasks.profilesMeanwhile}</p>
      <Failure error={found.error} />
      {found.value && types.length === 0 && <p class="muted">{directingTexts.value.tasks.noProfile}</p>}
      {types.length > 0 && (
        <>
          <div class="tabs" role="group" aria-label={pageTexts.value.profileType}>
            {types.map((each) => (
              <button key={each} type="button" aria-pressed={each === type} onClick={() => change({ type: each, zoom: "" })}>
                {partsOfType(each).name}
              </button>
            ))}
          </div>
          <MergedFlame
            types={types}
            selection={{ type, selector, startMs: Number(from), endMs: Number(to), functions: [], without: [], profileIds: ids }}
          />
        </>
      )}
    </>
  );
}

export function TaskResult({ task, round, isOpen }: { task: Task; round: number; isOpen: boolean }) {
  const words = directingTexts.value.tasks;
  const hasSchedules = WITH_SCHEDULES.includes(task.kind);
  const listed = useAnswer(hasSchedules ? `${task.taskId} ${isOpen ? round : ""}` : null, (abort) =>
    call<{ schedules?: Schedule[] }>("hearth.v1.TaskService/ListSchedules", { taskId: task.taskId }, abort),
  );
  const schedules = listed.value?.schedules ?? [];
  // Snapshots of threads are not stored as profiles.
  const views = task.kind === "TASK_KIND_TRACE" ? VIEWS.slice(0, 1) : VIEWS;
  const view = views.find((each) => each === param("view")) ?? views[0];
  const about = { task, round, isOpen };
  return (
    <section class="result">
      <div class="headline">
        <h2>{words.results}</h2>
        {views.length > 1 && (
          <div class="tabs" role="group" aria-label={words.results}>
            {views.map((each) => (
              <button key={each} type="button" aria-pressed={each === view} onClick={() => change({ view: each, zoom: "", search: "" })}>
                {words.views[each]}
              </button>
            ))}
          </div>
        )}
      </div>
      <Failure error={listed.error} />
      {view === "profile" && <StoredResult task={task} schedules={schedules} />}
      {view === "analysis" && hasSchedules && listed.value && <StacksAnalysis {...about} schedules={schedules} />}
      {view === "analysis" && task.kind === "TASK_KIND_TRACE" && <RequestsAnalysis {...about} />}
      {view === "analysis" && WITH_FILES.includes(task.kind) && <FilesAnalysis {...about} />}
    </section>
  );
}
