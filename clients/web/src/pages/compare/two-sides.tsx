// The two selections that a comparison is made of, as they stand in the address, and the form that changes them.
import { around } from "../../api/deploys";
import { encodeDiff, type Selection } from "../../api/encode";
import { formatHeight, rateUnit } from "../../api/timeline";
import { useAnswer, type Answer } from "../../api/use-answer";
import { formatSpan, formatTime, rangeKey, selector, span, type ProfileType } from "../../app/question";
import { texts } from "../../app/settings";
import { loadDiff, type Loaded } from "../../flame/load";
import { visibleName } from "../../flame/names";
import type { FlameTree } from "../../flame/tree";
import { toLocal, type Span } from "../../time";
import { formatValue } from "../../units";
import { change, param } from "../../url";
import { useDeploys } from "../use-deploys";
import { usePlace, type Place } from "../use-place";
import { MAX_COUNTED_NODES, useSamplesOf, type Samples } from "../use-samples";
import { LabelSides } from "./label-sides";

const MAX_NODES = 16384;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const AGGREGATION_MEAN = 2;
const PRESETS = ["previous", "hour", "day", "week", "same", "deploy"];

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

// The time of the deploy in the address, or the middle of a range that does not have it.
function deployTime({ startMs, endMs }: Span): number {
  const atMs = Number(param("deploy"));
  return startMs < atMs && atMs < endMs ? atMs : Math.floor((startMs + endMs) / 2);
}

function rangesOf(whole: Span, preset: string): { before: Span; after: Span } {
  return preset === "deploy" ? around(deployTime(whole), whole) : { before: earlier(whole, preset), after: whole };
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
  const ranges = rangesOf(span.value, preset);
  const before = { range: ranges.before, selector: param("base") || selector.value };
  const now = { range: ranges.after, selector: selector.value };
  return isSwapped ? { baseline: now, comparison: before, preset, isSwapped } : { baseline: before, comparison: now, preset, isSwapped };
}

export function keyOfSides(type: ProfileType, { baseline, comparison, preset, isSwapped }: TwoSides): string {
  return [rangeKey.value, type.ID, baseline.selector, comparison.selector, preset, param("deploy"), isSwapped].join(" ");
}

function select(type: string, { range: { startMs, endMs }, selector }: Side): Selection {
  return { type, selector, startMs, endMs, functions: [], without: [] };
}

function askDiff(type: string, { baseline, comparison }: TwoSides, maxNodes: number, isJudged: boolean, abort: AbortSignal): Promise<Loaded> {
  return loadDiff(encodeDiff(select(type, baseline), select(type, comparison), maxNodes, isJudged), abort);
}

// Where functions are written, as the comparison has them; frames that are gone are not asked about.
export function useDiffPlace(type: ProfileType | undefined, sides: TwoSides): Place {
  const place = usePlace(type ? { selection: select(type.ID, sides.comparison), key: keyOfSides(type, sides) } : null);
  return { ...place, onHover: (node, tree) => place.onHover(node && tree.diff!.rightTotal[node]! > 0 ? node : null, tree) };
}

// With `isJudged`, the server also tells changes from noise.
export function useDiff(type: ProfileType | undefined, sides: TwoSides, isJudged: boolean): Answer<Loaded> {
  return useAnswer(type ? keyOfSides(type, sides) : null, (abort) => askDiff(type!.ID, sides, MAX_NODES, isJudged, abort));
}

// The samples of both sides.
export function useDiffSamples(type: ProfileType | undefined, sides: TwoSides, types: readonly ProfileType[]): Samples<FlameTree> {
  const key = type ? keyOfSides(type, sides) : null;
  const ids = types.map(({ ID }) => ID);
  return useSamplesOf({ key, types: ids, type: type?.ID ?? "", zooms: ["zoom", "zoom2"] }, (counting, abort) =>
    askDiff(counting, sides, MAX_COUNTED_NODES, false, abort).then(({ tree }) => tree),
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
      <b>{title}</b> {formatSpan(range)}
    </span>
  );
}

// By its value alone, a choice names the deploy that it is about.
function choosePreset(choice: string): void {
  const [against, deploy = ""] = choice.split(" ");
  change({ against, deploy, zoom: "", zoom2: "" });
}

function Presets({ type, preset }: { type: ProfileType | undefined; preset: string }) {
  const words = texts.value.diff;
  const selection = { type: type?.ID ?? "", selector: selector.value, ...span.value, functions: [], without: [] };
  const { label, deploys } = useDeploys(selection, type ? [rangeKey.value, type.ID, selector.value].join(" ") : null);
  const atMs = deployTime(span.value);
  const known = preset === "deploy" && deploys.some((deploy) => deploy.atMs === atMs);
  return (
    <>
      <select aria-label={words.baseline} value={known ? `deploy ${atMs}` : preset} onChange={(event) => choosePreset(event.currentTarget.value)}>
        {PRESETS.map((each) => (
          <option key={each} value={each}>
            {words.presets[each]}
          </option>
        ))}
        {deploys.map((deploy) => (
          <option key={deploy.atMs} value={`deploy ${deploy.atMs}`}>
            {texts.value.comparing.beforeVersion(label, visibleName(deploy.version), formatTime(deploy.atMs))}
          </option>
        ))}
      </select>
      {preset === "deploy" && (
        <input
          type="datetime-local"
          step="1"
          aria-label={texts.value.comparing.deployTime}
          value={toLocal(atMs, 19)}
          min={toLocal(span.value.startMs, 19)}
          max={toLocal(span.value.endMs, 19)}
          onChange={({ currentTarget: { value } }) => value && change({ deploy: String(new Date(value).getTime()), zoom: "", zoom2: "" })}
        />
      )}
    </>
  );
}

export function SidesForm({ type, preset, isSwapped }: TwoSides & { type: ProfileType | undefined }) {
  const words = texts.value.diff;
  return (
    <>
      <Presets type={type} preset={preset} />
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
