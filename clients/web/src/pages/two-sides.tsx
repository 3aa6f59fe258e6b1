// The two selections that a comparison is made of, as they stand in the address, and the form that changes them.
import { encodeDiff, type Selection } from "../api/encode";
import { useAnswer, type Answer } from "../api/use-answer";
import { formatTime, rangeKey, selector, span, type ProfileType } from "../app/question";
import { texts } from "../app/settings";
import { loadDiff, type Loaded } from "../flame/load";
import type { Span } from "../time";
import { change, param } from "../url";

const MAX_NODES = 16384;
const DAY_MS = 86_400_000;
const PRESETS = ["previous", "day", "week", "same"];

export interface Side {
  range: Span;
  selector: string;
}

export interface TwoSides {
  baseline: Side;
  comparison: Side;
  preset: string;
  isSwapped: boolean;
}

function earlier(now: Span, preset: string): Span {
  if (preset === "same") {
    return now;
  }
  const by = preset === "day" ? DAY_MS : preset === "week" ? 7 * DAY_MS : now.endMs - now.startMs;
  return { startMs: now.startMs - by, endMs: now.endMs - by };
}

export function readSides(): TwoSides {
  const preset = PRESETS.find((each) => each === param("against")) ?? "previous";
  const isSwapped = param("swap") === "1";
  const before = { range: earlier(span.value, preset), selector: param("base") || selector.value };
  const now = { range: span.value, selector: selector.value };
  return isSwapped ? { baseline: now, comparison: before, preset, isSwapped } : { baseline: before, comparison: now, preset, isSwapped };
}

export function useDiff(type: ProfileType | undefined, { baseline, comparison, preset, isSwapped }: TwoSides): Answer<Loaded> {
  const select = ({ range, selector }: Side): Selection => ({
    type: type?.ID ?? "",
    selector,
    startMs: range.startMs,
    endMs: range.endMs,
    functions: [],
    without: [],
  });
  const key = type ? [rangeKey.value, type.ID, baseline.selector, comparison.selector, preset, isSwapped].join(" ") : null;
  return useAnswer(key, (abort) => loadDiff(encodeDiff(select(baseline), select(comparison), MAX_NODES), abort));
}

export function RangeOf({ title, range }: { title: string; range: Span }) {
  return (
    <span class="side">
      <b>{title}</b> {formatTime(range.startMs)} – {formatTime(range.endMs)}
    </span>
  );
}

export function SidesForm({ preset, isSwapped }: TwoSides) {
  const words = texts.value.diff;
  return (
    <>
      <select aria-label={words.baseline} value={preset} onChange={(event) => change({ against: event.currentTarget.value, zoom: "", zoom2: "" })}>
        {PRESETS.map((each) => (
          <option key={each} value={each}>
            {words.presets[each]}
          </option>
        ))}
      </select>
      <input
        class="code wide"
        aria-label={words.baselineSelector}
        placeholder={words.baselineSelector}
        value={param("base")}
        spellcheck={false}
        onChange={(event) => change({ base: event.currentTarget.value.trim(), zoom: "", zoom2: "" })}
      />
      <button type="button" aria-pressed={isSwapped} onClick={() => change({ swap: isSwapped ? "" : "1", zoom: "", zoom2: "" })}>
        {words.swap}
      </button>
    </>
  );
}
