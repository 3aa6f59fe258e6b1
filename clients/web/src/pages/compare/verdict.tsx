// The answer of a diff in words: how the total changed, which functions did, and how noise was told from change.
import { useMemo } from "preact/hooks";
import { texts } from "../../app/settings";
import { changedFrames, changeOf, judgementOf } from "../../flame/diff";
import { functionsOf } from "../../flame/functions";
import { visibleName } from "../../flame/names";
import { BEYOND_Q, type Noise } from "../../flame/noise";
import type { Loaded } from "../../flame/load";
import { nameOf, type FlameTree } from "../../flame/tree";
import { formatChange, formatCount, formatValue } from "../../units";
import { costOf, isMean, type TwoSides } from "./two-sides";

const MAX_CHANGES = 5;

interface Row {
  name: string;
  /** Of the share of its self; 0.01 is a point. */
  change: number;
  low?: number;
  high?: number;
}

/** Shares of each side's own total, so that a longer range is not a larger cost. */
function rowsOf(tree: FlameTree): Row[] {
  const noise = judgementOf(tree);
  if (noise) {
    return noise.functions.filter(({ q }) => q <= BEYOND_Q);
  }
  const { leftTicks, rightTicks } = tree.diff!;
  const share = (part: number | undefined, ticks: number) => (ticks > 0 ? (part ?? 0) / ticks : 0);
  return functionsOf(tree)
    .map((row) => ({ name: row.name, change: share(row.right?.self, rightTicks) - share(row.left?.self, leftTicks) }))
    .filter(({ change }) => change !== 0)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

function framesOf(tree: FlameTree): Row[] {
  const noise = judgementOf(tree);
  return changedFrames(tree).map((node) => ({
    name: nameOf(tree, node),
    change: changeOf(tree, node)!.points,
    low: noise!.low[node]!,
    high: noise!.high[node]!,
  }));
}

function points(share: number): string {
  return formatChange(share, 1).replace("%", "");
}

/** "24 slices of 1 h and 5 series", of one side. */
function partsOf(noise: Noise, side: 0 | 1): string {
  const length = formatValue(noise.sliceSeconds[side] * 1e9, "nanoseconds");
  return texts.value.noise.parts(formatCount(noise.slices[side]), length, noise.series[side] ? formatCount(noise.series[side]) : "");
}

function Method({ noise }: { noise: Noise | undefined }) {
  const words = texts.value.noise;
  if (!noise || noise.method === "unknown") {
    return <p class="muted">{words.unknown(noise?.reason ?? "")}</p>;
  }
  return (
    <details class="muted">
      <summary>{words.how}</summary>
      <p>{noise.method === "poisson" ? words.poisson(noise.reason) : words.method(partsOf(noise, 0), partsOf(noise, 1))}</p>
    </details>
  );
}

interface Props {
  loaded: Loaded;
  name: string;
  sides: TwoSides;
}

export function Verdict({ loaded, name, sides }: Props) {
  const words = texts.value.diff;
  const { leftTicks, rightTicks, noise } = loaded.tree.diff!;
  const before = costOf(leftTicks, sides.baseline, loaded);
  const now = costOf(rightTicks, sides.comparison, loaded);
  const rate = noise?.rate;
  if (before.value <= 0) {
    return <p class="verdict">{words.nothingBefore(name, now.text)}</p>;
  }
  const interval = rate && ` (${texts.value.noise.interval(formatChange(rate.low, rate.left), formatChange(rate.high, rate.left))})`;
  return (
    <>
      <p class="verdict">
        {words.verdict(formatChange(now.value - before.value, before.value) + (interval ?? ""), name, before.text, now.text)}
      </p>
      {!isMean(loaded) && (
        <p class="muted">
          {words.rates} {rate && rate.low <= 0 && rate.high >= 0 && texts.value.noise.totalWithin}
        </p>
      )}
    </>
  );
}

function List({ title, rows, isJudged }: { title: string; rows: Row[]; isJudged: boolean }) {
  const words = texts.value.noise;
  const more = isJudged ? words.more : words.moreUnjudged;
  const largest = Math.max(...rows.map(({ change }) => Math.abs(change)), 1e-4);
  return (
    <>
      <h2>{title}</h2>
      <ol class="changes">
        {rows.slice(0, MAX_CHANGES).map(({ name, change, low, high }) => (
          <li key={name}>
            <span class="number">
              <span aria-hidden="true">{change > 0 ? "▲" : "▼"}</span> {points(change)}
            </span>
            <meter class={change > 0 ? "more" : "less"} min={0} max={largest} value={Math.abs(change)} aria-hidden="true" />
            <span class="muted number">{low !== undefined && high !== undefined && words.interval(points(low), points(high))}</span>
            <span class="code name" title={visibleName(name)}>
              {visibleName(name)}
            </span>
          </li>
        ))}
      </ol>
      {rows.length > MAX_CHANGES && <p class="muted">{more(formatCount(rows.length - MAX_CHANGES))}</p>}
    </>
  );
}

export function Changes({ tree }: { tree: FlameTree }) {
  const rows = useMemo(() => rowsOf(tree), [tree]);
  const frames = useMemo(() => framesOf(tree), [tree]);
  const words = texts.value.noise;
  const noise = judgementOf(tree);
  const others = noise && formatCount(noise.judgedFunctions - noise.changedFunctions);
  return (
    <section>
      <List
        title={noise ? words.functions(noise.changedFunctions, others!) : rows.length > 0 ? texts.value.diff.list : texts.value.diff.unchanged}
        rows={rows}
        isJudged={Boolean(noise)}
      />
      {frames.length > 0 && <List title={words.frames} rows={frames} isJudged />}
      <Method noise={tree.diff?.noise} />
    </section>
  );
}
