// What the selection costs over time, by group; which tasks ran then; a brush for the range and for a comparison.
import { useState } from "preact/hooks";
import { call } from "../../api/connect";
import type { Selection } from "../../api/encode";
import { askTimeline, CHART_POINTS, formatHeight, othersOf, type Timeline as Lines } from "../../api/timeline";
import { useAnswer } from "../../api/use-answer";
import { askingTexts } from "../../app/asking-texts";
import { pageTexts } from "../../app/page-texts";
import { formatTime, range, rangeKey, span } from "../../app/question";
import { texts } from "../../app/settings";
import type { Marker } from "../../chart/markers";
import { lineColour } from "../../chart/line-plot";
import { lineName, TimelineChart } from "../../chart/timeline-chart";
import { serviceOf, withMatcher } from "../../selector";
import { chooseStep } from "../../time";
import { formatValue } from "../../units";
import { change, go, param, question } from "../../url";
import { Failure } from "../notice";
import type { Asked } from "./profile-cost";
import type { Task } from "../directing/tasks";
import { useDeploys } from "../use-deploys";
import { showWholeRange, WholeRange } from "./whole-range";

const MAX_LINES = 8;
const MAX_TASKS = 100;
// Longer ranges are read from sums, which name no profiles.
const EXEMPLARS_MS = 6 * 3_600_000;

interface Grouped {
  timeline: Lines;
  // The line of all groups that have none of their own.
  others?: number;
}

async function askGroups(selection: Selection, by: string, abort: AbortSignal): Promise<Grouped> {
  const asked = { ...selection, span: selection, stepS: chooseStep(selection, CHART_POINTS), limit: MAX_LINES };
  if (by === "") {
    const exemplars = selection.endMs - selection.startMs <= EXEMPLARS_MS;
    return { timeline: await askTimeline({ ...asked, groupBy: [], exemplars }, abort) };
  }
  // The server notes that it left groups out, which the line of all others makes up for; a signal of its own drops the note.
  const [timeline, whole] = await Promise.all([
    askTimeline({ ...asked, groupBy: [by] }, AbortSignal.any([abort])),
    askTimeline({ ...asked, groupBy: [] }, abort),
  ]);
  const all = whole.lines[0];
  const rest = all && timeline.lines.length >= MAX_LINES && othersOf(all, timeline.lines);
  // Exactly as many groups as lines leave nothing but what rounding left.
  return rest && rest.mean > all.mean * 1e-9
    ? { timeline: { ...timeline, lines: [...timeline.lines, rest] }, others: timeline.lines.length }
    : { timeline };
}

function nameOfTask({ kind, service, origin, causes = [] }: Task): string {
  const words = askingTexts.value.timeline;
  const name = `${pageTexts.value.tasks.kinds[kind] ?? kind}, ${service ?? ""}`;
  const cause = causes[0];
  if (origin !== "TASK_ORIGIN_POLICY") {
    return words.task(name);
  }
  return cause ? words.trigger(name, `${cause.monitor} ${cause.current ?? 0} ≥ ${cause.threshold ?? 0}`) : words.policy(name);
}

// Who may not see tasks sees the chart without them.
function useTasks(): Marker[] {
  const service = serviceOf(param("q"));
  const answer = useAnswer(`${rangeKey.value} ${service}`, (abort) =>
    call<{ tasks?: Task[] }>(
      "hearth.v1.TaskService/ListTasks",
      {
        service,
        startMs: String(Math.floor(span.value.startMs)),
        endMs: String(Math.floor(span.value.endMs)),
        pageSize: MAX_TASKS,
      },
      abort,
    ).catch(() => ({ tasks: [] })),
  );
  return (answer.value?.tasks ?? []).map((task) => ({
    atMs: Number(task.startMs ?? 0),
    name: `${formatTime(Number(task.startMs ?? 0))} ${nameOfTask(task)}`,
    onOpen: () => go("tasks", { ...question(), id: task.taskId }),
  }));
}

// New versions, each of which leads to a comparison of the time after it with the time before it.
function useVersions({ selection, key }: Asked): Marker[] {
  const { label, deploys } = useDeploys(selection, key);
  return deploys.map(({ version, atMs }) => ({
    atMs,
    name: askingTexts.value.timeline.deploy(label, version, formatTime(atMs)),
    onOpen: () => go("diff", { ...question(), against: "deploy", deploy: String(atMs) }),
  }));
}

function zoomTo(fromMs: number, toMs: number): void {
  const whole = param("whole") || `${range.value.from} ${range.value.to}`;
  change({ from: String(fromMs), to: String(toMs), whole });
}

function Legend({ grouped: { timeline, others }, by }: { grouped: Grouped; by: string }) {
  const words = askingTexts.value.timeline;
  return (
    <ul class="lines">
      {timeline.lines.map((line, i) => {
        const name = i === others ? words.others : lineName(line.labels) || "—";
        return (
          <li key={name}>
            <svg width="10" height="10" aria-hidden="true">
              <rect width="10" height="10" fill={i === others ? "var(--muted)" : lineColour(i)} />
            </svg>
            {i === others ? (
              name
            ) : (
              <button
                type="button"
                class="plain"
                title={words.only(name)}
                onClick={() => change({ q: withMatcher(param("q", "{}"), { name: by, op: "=", value: line.labels[by] ?? "" }), zoom: "" })}
              >
                {name}
              </button>
            )}
            <span class="number">{formatHeight(line.mean, timeline.unit)}</span>
          </li>
        );
      })}
    </ul>
  );
}

export function Timeline({ asked }: { asked: Asked }) {
  const words = askingTexts.value.timeline;
  const by = param("by");
  const [isComparing, setIsComparing] = useState(false);
  const markers = [...useTasks(), ...useVersions(asked)];
  const answer = useAnswer(`${asked.key} ${by}`, (abort) =>
    askGroups(asked.selection, by, abort).then((grouped) => ({ ...grouped, by })),
  );
  const shown = answer.value;
  const timeline = shown?.timeline;
  return (
    <div class="timeline-box" aria-busy={answer.isLoading}>
      <Failure error={answer.error} />
      {shown && timeline && (
        <>
          <TimelineChart
            timeline={timeline}
            label={words.label}
            others={shown.others === undefined ? undefined : { at: shown.others, name: words.others }}
            markers={markers}
            markersLabel={words.markers}
            isComparing={isComparing}
            windowNames={texts.value.diff}
            onRange={zoomTo}
            onCompare={(from, to) => go("diff", { ...question(), from: String(from), to: String(to) })}
            onReset={showWholeRange}
            exemplarTitle={({ ms, value }) =>
              texts.value.comparing.exemplar(formatTime(ms), formatValue(value, asked.selection.type.split(":")[2] ?? ""))
            }
            onExemplar={({ profileId }) => go("profiles", { ...question(), id: profileId, type: asked.selection.type })}
          />
          <div class="timeline-tools">
            {shown.by === "" ? <span class="space" /> : <Legend grouped={shown} by={shown.by} />}
            <button type="button" aria-pressed={isComparing} title={words.compareHint} onClick={() => setIsComparing(!isComparing)}>
              {words.compare}
            </button>
            <WholeRange />
          </div>
        </>
      )}
    </div>
  );
}
