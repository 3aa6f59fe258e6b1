// What the question costs: said before a large one runs, and on request for any.
import { useRef } from "preact/hooks";
import type { Selection } from "../../api/encode";
import { askPlan, type Plan } from "../../api/explain";
import { useAnswer, type Answer } from "../../api/use-answer";
import { askingTexts } from "../../app/asking-texts";
import { rangeKey } from "../../app/question";
import { hashText } from "../../flame/names";
import { formatCount, formatDuration, formatValue } from "../../units";
import { change, param } from "../../url";
import { Failure, Notes } from "../notice";
import { keyOfSelection } from "./profile-state";

// Shorter ranges are answered before anybody has read what they cost.
const LONG_MS = 2 * 86_400_000;
const COSTLY_MS = 5_000;

// A question that may run: its range by name, because the times of "last 1 h" move.
export interface Asked {
  selection: Selection;
  range: string;
  key: string;
}

interface Permitted {
  asked: Asked | null;
  // Of the question in the address; the question that was permitted last may be another.
  isHeld: boolean;
  plan: Answer<Plan>;
  permit(): void;
}

export function usePermission(selection: Selection): Permitted {
  const key = `${rangeKey.value} ${keyOfSelection(selection)}`;
  const isKnown = selection.type !== "";
  const isLong = selection.endMs - selection.startMs > LONG_MS;
  const isExplained = param("explain") === "1";
  const plan = useAnswer(isKnown && (isLong || isExplained) ? key : null, (abort) =>
    askPlan(selection, abort).then((found) => ({ ...found, key })),
  );
  // The link that somebody sends after permitting a question runs it, too; any other question is asked about again.
  const permission = hashText(key).toString(36);
  const counted = plan.value?.key === key ? plan.value : undefined;
  const isCheap = counted !== undefined && counted.milliseconds <= COSTLY_MS;
  const mayRun = !isLong || isCheap || param("run") === permission || (plan.error !== undefined && !plan.isLoading);

  const last = useRef<Asked | null>(null);
  if (isKnown && mayRun) {
    last.current = { selection, range: rangeKey.value, key };
  }
  return {
    asked: last.current,
    isHeld: isKnown && !mayRun && counted !== undefined,
    plan,
    permit: () => change({ run: permission }),
  };
}

export function CostlyQuestion({ plan, onRun }: { plan: Plan; onRun(): void }) {
  const words = askingTexts.value.cost;
  return (
    <div class="costly" role="alert">
      <p>{words.costly(formatCount(plan.rows), formatValue(plan.bytes, "bytes"), formatDuration(plan.milliseconds))}</p>
      <p class="muted">{words.advice}</p>
      <p>
        <button type="button" class="primary" onClick={onRun}>
          {words.run}
        </button>{" "}
        <ExplainButton />
      </p>
    </div>
  );
}

export function ExplainButton() {
  const isOpen = param("explain") === "1";
  return (
    <button type="button" class="plain" aria-expanded={isOpen} onClick={() => change({ explain: isOpen ? "" : "1" })}>
      {isOpen ? askingTexts.value.cost.hide : askingTexts.value.cost.explain}
    </button>
  );
}

export function PlanTable({ answer }: { answer: Answer<Plan> }) {
  const words = askingTexts.value.cost;
  const plan = answer.value;
  return (
    <section class="plan" aria-label={words.title} aria-busy={answer.isLoading}>
      <Failure error={answer.error} />
      {plan && (
        <>
          <p>
            {words.sum(formatCount(plan.series), formatCount(plan.services), formatDuration(plan.milliseconds))}
          </p>
          <table>
            <thead>
              <tr>
                <th scope="col">{words.source}</th>
                <th scope="col" class="number">{words.rows}</th>
                <th scope="col" class="number">{words.bytes}</th>
                <th scope="col" class="number">{words.time}</th>
              </tr>
            </thead>
            <tbody>
              {plan.sources.map((source) => (
                <tr key={source.source}>
                  <th scope="row">{words.sources[source.source] ?? source.source}</th>
                  <td class="number">{formatCount(source.rows)}</td>
                  <td class="number">{formatValue(source.bytes, "bytes")}</td>
                  <td class="number">{formatDuration(source.milliseconds)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <Notes notes={plan.notes} />
        </>
      )}
    </section>
  );
}
