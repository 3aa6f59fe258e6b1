// What a policy has done: the tasks that it started, the processes that it watches, its earlier versions.
import { call } from "../../api/connect";
import { useAnswer, type Answer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { PageLink } from "../../app/page-link";
import { pageTexts } from "../../app/page-texts";
import { formatTime, rangeKey, rangeName, span } from "../../app/question";
import { rulesOf, type StoredPolicy } from "./policy";
import { formatCount } from "../../units";
import { Failure } from "../notice";
import { causeText, monitorValue, ruleName, stateOf } from "./policy-words";
import { TaskLinks } from "./task-links";
import type { Task } from "./tasks";
import { Rows } from "../rows";

const TASKS_SHOWN = 50;

interface StartedTasks {
  tasks?: Task[];
}

export function useStarted(service: string): Answer<StartedTasks> {
  return useAnswer(`${rangeKey.value} ${service}`, (abort) =>
    call<StartedTasks>(
      "hearth.v1.TaskService/ListTasks",
      {
        service,
        origin: "TASK_ORIGIN_POLICY",
        startMs: String(Math.floor(span.value.startMs)),
        endMs: String(Math.floor(span.value.endMs)),
        pageSize: TASKS_SHOWN,
      },
      abort,
    ),
  );
}

function Started({ listed }: { listed: Answer<StartedTasks> }) {
  const words = directingTexts.value;
  const tasks = pageTexts.value.tasks;
  const started = listed.value?.tasks ?? [];
  return (
    <section>
      <h2>{words.policies.started(rangeName())}</h2>
      <Failure error={listed.error} />
      {listed.value && started.length === 0 && <p class="muted">{words.policies.nothingStarted}</p>}
      {started.length > 0 && (
        <Rows heads={[tasks.started, words.policies.process, words.policies.why, tasks.state, null]}>
          {started.map((task) => (
            <tr key={task.taskId}>
              <th scope="row">
                <PageLink page="tasks" to={{ id: task.taskId }}>
                  {formatTime(Number(task.startMs ?? 0))}
                </PageLink>
              </th>
              <td class="named code">{[task.process, task.instance && `(${task.instance})`].filter(Boolean).join(" ")}</td>
              <td class="reason">{(task.causes ?? []).map(causeText).join("; ")}</td>
              <td title={task.stateReason}>{tasks.states[task.state ?? ""] ?? task.state}</td>
              <td>
                <TaskLinks task={task} />
              </td>
            </tr>
          ))}
        </Rows>
      )}
    </section>
  );
}

interface MonitoredProcess {
  process?: { processId?: string; name?: string; canBeProfiled?: boolean };
  triggeredCount?: number;
  lastTriggeredMs?: string;
  silentUntilMs?: string;
}

interface Monitored {
  instances?: { instance?: string; processes?: MonitoredProcess[] }[];
}

function stateOfProcess(watched?: MonitoredProcess): string {
  const words = directingTexts.value.policies;
  const times = watched?.triggeredCount ? [words.times(formatCount(watched.triggeredCount)), words.lastTime(formatTime(Number(watched.lastTriggeredMs)))] : [];
  const silentMs = Number(watched?.silentUntilMs ?? 0);
  const now = watched?.process?.canBeProfiled === true ? (silentMs > 0 ? words.silent(formatTime(silentMs)) : words.ready) : words.cannot;
  return [now, ...times].join(", ");
}

function Instances({ service, kinds }: { service: string; kinds: string[] }) {
  const words = directingTexts.value;
  // Agents start each kind of profiling by itself, so a process has a state for each.
  const asked = kinds.length > 0 ? kinds : ["ON_CPU"];
  const answers = useAnswer(`${service} ${asked.join(" ")}`, (abort) =>
    Promise.all(
      asked.map((kind) => call<Monitored>("hearth.v1.PolicyService/MonitoredInstances", { service, kind: "TASK_KIND_" + kind }, abort)),
    ),
  );
  const [first, ...others] = answers.value ?? [];
  const find = (other: Monitored, id?: string) =>
    (other.instances ?? []).flatMap(({ processes = [] }) => processes).find(({ process }) => process?.processId === id);
  const rows = (first?.instances ?? []).flatMap(({ instance, processes = [] }) =>
    processes.map((watched) => ({ instance, watched, others: others.map((other) => find(other, watched.process?.processId)) })),
  );
  return (
    <section>
      <h2>{words.policies.monitored}</h2>
      <Failure error={answers.error} />
      {answers.value && rows.length === 0 && <p class="muted">{words.policies.noneMonitored}</p>}
      {rows.length > 0 && (
        <div class="rows">
          <table>
            <thead>
              <tr>
                <th scope="col">{words.instance}</th>
                <th scope="col">{words.policies.process}</th>
                {asked.map((kind) => (
                  <th scope="col" key={kind}>
                    {words.kinds[kind] ?? kind}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(({ instance, watched, others: more }) => (
                <tr key={watched.process?.processId}>
                  <th scope="row" class="named code">
                    {instance}
                  </th>
                  <td class="named code">{watched.process?.name}</td>
                  {[watched, ...more].map((each, i) => (
                    <td key={asked[i]}>{stateOfProcess(each)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function History({ service, onRestore }: { service: string; onRestore(version: StoredPolicy): void }) {
  const words = directingTexts.value.policies;
  const past = useAnswer(service, (abort) =>
    call<{ versions?: StoredPolicy[] }>("hearth.v1.PolicyService/PolicyHistory", { service }, abort),
  );
  const versions = past.value?.versions ?? [];
  if (versions.length === 0) {
    return <Failure error={past.error} />;
  }
  return (
    <section>
      <h2>{words.history}</h2>
      <Rows heads={[{ number: words.version }, words.changed, words.by, words.state, words.rules, null]}>
        {versions.map((version, i) => (
          <tr key={version.version}>
            <th scope="row" class="number">
              {version.version}
            </th>
            <td>{formatTime(Number(version.modifiedMs ?? 0))}</td>
            <td class="named">{version.modifiedBy}</td>
            <td>{stateOf(version)}</td>
            <td class="reason">
              {rulesOf(version)
                .map((rule) => `${ruleName(rule)}: ${monitorValue(rule.monitor, rule.threshold)}, ${rule.count}/${rule.period} s`)
                .join("; ") || words.nothingWatched}
            </td>
            <td>
              {i > 0 && (
                <button type="button" aria-label={words.restoreVersion(version.version ?? "")} onClick={() => onRestore(version)}>
                  {words.restore}
                </button>
              )}
            </td>
          </tr>
        ))}
      </Rows>
    </section>
  );
}

interface Props {
  service: string;
  kinds: string[];
  started: Answer<StartedTasks>;
  onRestore(version: StoredPolicy): void;
}

export function PolicyPast({ service, kinds, started, onRestore }: Props) {
  return (
    <>
      <Started listed={started} />
      <Instances service={service} kinds={kinds} />
      <History service={service} onRestore={onRestore} />
    </>
  );
}
