// The two selections that a comparison is made of, as they stand in the address, and the form that changes them.
import { encodeDiff, type Selection } from "../../api/encode";
import { formatHeight, rateUnit } from "../../api/timeline";
import { useAnswer, type Answer } from "../../api/use-answer";
import { formatTime, rangeKey, selector, span, type ProfileType } from "../../app/question";
import { texts } from "../../app/settings";
import { loadDiff, type Loaded } from "../../flame/load";
import type { Span } from "../../time";
import { formatValue } from "../../units";
import { change, param } from "../../url";
import { LabelSides } from "./label-sides";

const MAX_NODES = 16384;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AGGREGATION_MEAN = 2;
const PRESETS = ["previous", "hour", "day", "week", "same"];

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
  const by = preset === "hour" ? HOUR_MS : preset === "day" ? DAY_MS : preset === "week" ? 7 * DAY_MS : now.endMs - now.startMs;
  return { startMs: now.startMs - by, endMs: now.endMs - by };
}

export function readSides(): TwoSides {
  const preset = PRESETS.find((each) => each === param("against")) ?? "previous";
  const isSwapped = param("swap") === "1";
  const before = { range: earlier(span.value, preset), selector: param("base") || selector.value };
  const now = { range: span.value, selector: selector.value };
  return isSwapped ? { baseline: now, comparison: before, preset, isSwapped } : { baseline: before, comparison: now, preset, isSwapped };
}

export function keyOfSides(type: ProfileType, { baseline, comparison, preset, isSwapped }: TwoSides): string {
  return [rangeKey.value, type.ID, baseline.selector, comparison.selector, preset, isSwapped].join(" ");
}

// With `isJudged`, the server also tells changes from noise.
export function useDiff(type: ProfileType | undefined, sides: TwoSides, isJudged: boolean): Answer<Loaded> {
  const select = ({ range, selector }: Side): Selection => ({
    type: type?.ID ?? "",
    selector,
    startMs: range.startMs,
    endMs: range.endMs,
    functions: [],
    without: [],
  });
  return useAnswer(type ? keyOfSides(type, sides) : null, (abort) =>
    loadDiff(encodeDiff(select(sides.baseline), select(sides.comparison), MAX_NODES, isJudged), abort),
  );
}

export function isMean({ aggregation }: Loaded): boolean {
  return aggregation === AGGREGATION_MEAN;
}

// What a total of a side costs per second of its range; of memory in use the mean, which no range divides.
export function costOf(total: number, { range }: Side, loaded: Loaded): { value: number; text: string } {
  const { unit } = loaded;
  if (isMean(loaded)) {
    return { value: total, text: formatValue(total, unit) };
  }
  const value = (1000 * total) / (range.endMs - range.startMs);
  return { value, text: formatHeight(unit === "nanoseconds" ? value / 1e9 : value, rateUnit(unit)) };
}

export function RangeOf({ title, range }: { title: string; range: Span }) {
  return (
    <span class="side">
      <b>{title}</b> {formatTime(range.startMs)} – {formatTime(range.endMs)}
    </span>
  );
}

export function SidesForm({ type, preset, isSwapped }: TwoSides & { type: ProfileType | undefined }) {
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
      <LabelSides type={type} />
      <button type="button" aria-pressed={isSwapped} onClick={() => change({ swap: isSwapped ? "" : "1", zoom: "", zoom2: "" })}>
        {words.swap}
      </button>
    </>
  );
}
