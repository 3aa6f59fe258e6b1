// Results of on-CPU and off-CPU tasks: the stack traces that agents sent, of one process or of all.
import { useMemo } from "preact/hooks";
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { formatTime } from "../../app/question";
import { treeOfForest } from "../../flame/forest";
import { formatCount, formatValue } from "../../units";
import { change, param } from "../../url";
import { AddressFlame } from "../address-flame";
import { NothingYet } from "../nothing-yet";
import { Failure, Notes } from "../notice";
import type { Task } from "./tasks";

const SERVICE = "hearth.v1.TaskService/";

export interface Schedule {
  scheduleId: string;
  process?: string;
  instance?: string;
  startMs?: string;
  endMs?: string;
  profileIds?: string[];
}

interface Analysis {
  trees?: { elements?: { id?: number; parentId?: number; symbol?: string; stackType?: string; total?: string }[] }[];
  tip?: string;
  unit?: string;
}

// Frames of the kernel are marked as everywhere else on the page, so that colours tell them.
function treeOf({ trees = [] }: Analysis) {
  return treeOfForest(
    trees.map(({ elements = [] }) =>
      elements.map(({ id = 0, parentId = 0, symbol = "", stackType, total = "0" }) => ({
        id,
        parentId,
        name: stackType === "STACK_TYPE_KERNEL" ? symbol + "_[k]" : symbol,
        total: Number(total),
      })),
    ),
  );
}

function Runs({ schedules }: { schedules: Schedule[] }) {
  const words = directingTexts.value.tasks;
  return (
    <label>
      {words.runs}{" "}
      <select value={param("run")} onChange={(event) => change({ run: event.currentTarget.value, zoom: "" })}>
        <option value="">{words.allRuns}</option>
        {schedules.map(({ scheduleId, process, instance, startMs }) => (
          <option key={scheduleId} value={scheduleId}>
            {[process, instance, formatTime(Number(startMs ?? 0))].filter(Boolean).join(", ")}
          </option>
        ))}
      </select>
    </label>
  );
}

export function StacksAnalysis({ task, schedules, round, isOpen }: { task: Task; schedules: Schedule[]; round: number; isOpen: boolean }) {
  const words = directingTexts.value.tasks;
  const isOff = task.kind === "TASK_KIND_OFF_CPU";
  const weight = isOff && param("weight") !== "COUNT" ? "DURATION" : "COUNT";
  const ids = schedules.map(({ scheduleId }) => scheduleId).filter((id) => param("run") === "" || id === param("run"));
  const answer = useAnswer(ids.length > 0 ? `${ids.join(" ")} ${weight} ${isOpen ? round : ""}` : null, (abort) =>
    call<Analysis>(SERVICE + "AnalyzeStacks", { scheduleIds: ids, weight: "STACK_WEIGHT_" + weight }, abort),
  );
  const tree = useMemo(() => treeOf(answer.value ?? {}), [answer.value]);
  if (schedules.length === 0) {
    return <NothingYet isOpen={isOpen} />;
  }
  const total = tree.total[0];
  const unit = answer.value?.unit ?? "";
  const shown = words.units[unit] === undefined ? [formatValue(total, unit), ""] : [formatCount(total), words.units[unit]];
  return (
    <>
      <div class="tools">
        <span class="figure" role="status">
          {answer.value && (isOpen ? words.sofar(shown[0], shown[1]) : words.got(shown[0], shown[1]))}
        </span>
        {schedules.length > 1 && <Runs schedules={schedules} />}
        {isOff && (
          <label>
            {words.weight}{" "}
            <select value={weight} onChange={(event) => change({ weight: event.currentTarget.value, zoom: "" })}>
              {["DURATION", "COUNT"].map((each) => (
                <option key={each} value={each}>
                  {words.weights[each]}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <Failure error={answer.error} />
      <Notes notes={[answer.value?.tip ?? ""]} />
      {total > 0 && (
        <div class="views flame">
          <AddressFlame tree={tree} unit={unit} />
        </div>
      )}
    </>
  );
}
