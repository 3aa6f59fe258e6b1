// Two ranges compared: the sentence first, then what changed most, then the picture.
import { encodeDiff, type Selection } from "../api/encode";
import { useAnswer } from "../api/use-answer";
import { chooseType, formatTime, rangeKey, selector, span, typeName, useProfileTypes } from "../app/question";
import { texts } from "../app/settings";
import { loadDiff } from "../flame/load";
import type { Span } from "../time";
import { change, param } from "../url";
import { AddressFlame } from "./address-flame";
import { DiffTimeline } from "./diff-timeline";
import { Empty } from "./empty";
import { Failure, Notes } from "./notice";
import { Changes, Verdict } from "./verdict";

const MAX_NODES = 16384;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const PRESETS = ["previous", "hour", "day", "week", "same"];

function earlier(now: Span, preset: string): Span {
  if (preset === "same") {
    return now;
  }
  const by = preset === "hour" ? HOUR_MS : preset === "day" ? DAY_MS : preset === "week" ? 7 * DAY_MS : now.endMs - now.startMs;
  return { startMs: now.startMs - by, endMs: now.endMs - by };
}

function Side({ title, range }: { title: string; range: Span }) {
  return (
    <span class="side">
      <b>{title}</b> {formatTime(range.startMs)} – {formatTime(range.endMs)}
    </span>
  );
}

export function Diff() {
  const words = texts.value.diff;
  const types = useProfileTypes();
  const type = chooseType(types.value ?? []);
  const preset = PRESETS.find((each) => each === param("against")) ?? "previous";
  const isSwapped = param("swap") === "1";
  const now = span.value;
  const before = earlier(now, preset);

  const other = param("base") || selector.value;
  const select = (range: Span, of: string): Selection => ({
    type: type?.ID ?? "",
    selector: of,
    startMs: range.startMs,
    endMs: range.endMs,
    functions: [],
    without: [],
  });
  const [left, right] = isSwapped ? [now, before] : [before, now];
  const [leftSelector, rightSelector] = isSwapped ? [selector.value, other] : [other, selector.value];
  const key = type ? `${rangeKey.value} ${type.ID} ${selector.value} ${other} ${preset} ${isSwapped}` : null;
  const compared = useAnswer(key, (abort) => loadDiff(encodeDiff(select(left, leftSelector), select(right, rightSelector), MAX_NODES), abort));
  const tree = compared.value?.tree;

  if (types.value?.length === 0) {
    return <Empty />;
  }
  return (
    <section class="diff" aria-busy={compared.isLoading}>
      <div class="headline">
        <h1>{words.title}</h1>
        <Side title={words.baseline} range={left} />
        <Side title={words.comparison} range={right} />
        <select aria-label={words.baseline} value={preset} onChange={(event) => change({ against: event.currentTarget.value, zoom: "" })}>
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
          onChange={(event) => change({ base: event.currentTarget.value.trim(), zoom: "" })}
        />
        <button type="button" aria-pressed={isSwapped} onClick={() => change({ swap: isSwapped ? "" : "1", zoom: "" })}>
          {words.swap}
        </button>
      </div>
      <Failure error={types.error ?? compared.error} />
      <Notes notes={compared.value?.notes ?? []} />
      {tree?.diff && type && (
        <>
          <DiffTimeline type={type.ID} selector={selector.value} baseline={left} comparison={right} of={key!} />
          <Verdict tree={tree} unit={compared.value!.unit} name={typeName(type)} before={left} now={right} />
          <Changes tree={tree} />
          <div class="views flame">
            <AddressFlame tree={tree} unit={compared.value!.unit} />
          </div>
        </>
      )}
    </section>
  );
}
