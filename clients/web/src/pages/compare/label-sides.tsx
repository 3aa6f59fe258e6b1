// Two values of a label as the two sides: before and after a version, one load beside another.
import { useState } from "preact/hooks";
import { askLabelStats, type LabelStats } from "../../api/label-stats";
import { useAnswer } from "../../api/use-answer";
import { useLabelNames } from "../../app/query-bar";
import { rangeKey, selector, span, type ProfileType } from "../../app/question";
import { texts } from "../../app/settings";
import { visibleName } from "../../flame/names";
import { labelValues, withLabelValues } from "../../label-values";
import { change, param } from "../../url";
import { Failure } from "../notice";

const MAX_VALUES = 100;

// The selector without a condition on the label: its values are searched in it.
function selectorWithout(label: string): string {
  return withLabelValues(selector.value, label, []);
}

function askValues(type: ProfileType, label: string, abort: AbortSignal): Promise<LabelStats> {
  const selection = { type: type.ID, selector: selectorWithout(label), ...span.value, functions: [], without: [] };
  return askLabelStats(selection, label, MAX_VALUES, abort);
}

function compareValues(label: string, before: string, after: string): void {
  const of = (value: string) => withLabelValues(selectorWithout(label), label, [value]);
  change({ label, base: of(before), q: of(after), against: "same", swap: "", zoom: "", zoom2: "" });
}

// The two values that cost most, in the order in which versions are numbered.
function likelyPair({ values }: LabelStats): [string, string] | null {
  const [one, other] = values.map(({ value }) => value).filter((value) => value !== "");
  if (one === undefined || other === undefined) {
    return null;
  }
  return one.localeCompare(other, undefined, { numeric: true }) < 0 ? [one, other] : [other, one];
}

export function LabelSides({ type }: { type: ProfileType | undefined }) {
  const words = texts.value.comparing.labelSides;
  const label = param("label");
  const [refusal, setRefusal] = useState<Error | null>(null);
  const names = useLabelNames();
  const key = type && label ? [rangeKey.value, type.ID, label, selectorWithout(label)].join(" ") : null;
  const answer = useAnswer(key, (abort) => askValues(type!, label, abort));
  const values = (answer.value?.values ?? []).map(({ value }) => value);
  const before = labelValues(param("base"), label)[0] ?? "";
  const after = labelValues(selector.value, label)[0] ?? "";

  const choose = async (name: string) => {
    setRefusal(null);
    if (name === "" || !type) {
      change({ label: "", base: "", q: selectorWithout(label), against: "", zoom: "", zoom2: "" });
      return;
    }
    try {
      const pair = likelyPair(await askValues(type, name, new AbortController().signal));
      if (pair) {
        compareValues(name, ...pair);
      } else {
        setRefusal(new Error(words.tooFew(name)));
      }
    } catch (error) {
      setRefusal(error as Error);
    }
  };

  const value = (title: string, chosen: string, onChoose: (value: string) => void) => (
    <select aria-label={title} value={chosen} onChange={(event) => onChoose(event.currentTarget.value)}>
      {!values.includes(chosen) && <option value={chosen}>{visibleName(chosen)}</option>}
      {values.map((each) => (
        <option key={each} value={each}>
          {visibleName(each)}
        </option>
      ))}
    </select>
  );
  return (
    <>
      <select aria-label={words.by} value={label} onChange={(event) => void choose(event.currentTarget.value)}>
        <option value="">{words.none}</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {words.of(visibleName(name))}
          </option>
        ))}
      </select>
      {label !== "" && (
        <>
          {value(`${texts.value.diff.baseline}, ${label}`, before, (chosen) => compareValues(label, chosen, after))}
          {value(`${texts.value.diff.comparison}, ${label}`, after, (chosen) => compareValues(label, before, chosen))}
        </>
      )}
      <Failure error={refusal ?? answer.error} />
    </>
  );
}
