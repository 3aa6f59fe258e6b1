// What is said about a frame: in the fixed detail line and in the tooltip.
import type { ComponentChildren } from "preact";
import { formatChange, formatCount, formatShare, formatValue } from "../units";
import { changeOf, isChanged, judgementOf } from "./diff";
import { samplesOf } from "./counts";
import { CULLED, type Layout } from "./layout";
import { boundedName, kindOf, packageOf } from "./names";
import type { FlameTexts } from "./texts";
import { nameOf, OTHER, type FlameDiff, type FlameTree } from "./tree";

/** Enough to tell functions apart, and little enough that nothing else leaves the screen. */
const LONGEST_NAME = 2000;

export function shownName(tree: FlameTree, node: number, texts: FlameTexts): string {
  return node === 0 ? texts.root : boundedName(nameOf(tree, node), LONGEST_NAME);
}

interface Props {
  tree: FlameTree;
  layout: Layout;
  box: number;
  /** What is described without a box; -1: nothing. */
  node?: number;
  unit: string;
  texts: FlameTexts;
  /** Of the same question, samples instead of what the tree measures. */
  counts?: FlameTree;
}

/** Each side by its own total; the sum of both is only how wide the box is. */
function diffFacts(tree: FlameTree, diff: FlameDiff, node: number, unit: string, texts: FlameTexts): string[] {
  const change = changeOf(tree, node)!;
  const extra = change.isNew ? ` (${texts.onlyNew})` : change.isGone ? ` (${texts.onlyBefore})` : "";
  const inPoints = (share: number) => formatChange(share, 1).replace("%", "");
  const noise = judgementOf(tree);
  const isJudged = noise !== undefined && noise.q[node]! < 1;
  const judgement = isJudged
    ? ` (${texts.interval(inPoints(noise.low[node]!), inPoints(noise.high[node]!))}), ${isChanged(tree, node) ? texts.beyondNoise : texts.withinNoise}`
    : "";
  return [
    `${texts.baseline} ${formatValue(diff.leftTotal[node]!, unit)}, ${formatShare(change.left, 1)}`,
    `${texts.comparison} ${formatValue(diff.rightTotal[node]!, unit)}, ${formatShare(change.right, 1)}`,
    `${texts.change} ${inPoints(change.points)} ${texts.points}${judgement}${extra}`,
    `${texts.self} ${formatValue(diff.leftSelf[node]!, unit)} → ${formatValue(diff.rightSelf[node]!, unit)}`,
  ];
}

/** One sentence per fact; the numbers say what 100 % is. */
function factsOf({ tree, layout, box, node: undrawn = -1, unit, texts, counts }: Props): { name: string; facts: string[] } {
  const node = box >= 0 ? layout.node[box]! : undrawn;
  const sum = box >= 0 ? layout.sum[box]! : tree.total[node]!;
  const whole = tree.total[0]!;
  const total = `${texts.total} ${formatValue(sum, unit)}, ${formatShare(sum, whole)} ${texts.ofAll}`;
  if (node === CULLED) {
    return { name: texts.culled(formatCount(layout.count[box]!)), facts: [total] };
  }

  const facts = tree.diff ? diffFacts(tree, tree.diff, node, unit, texts) : [total];
  if (!tree.diff) {
    const parent = tree.parent[node]!;
    const self = tree.self[node]!;
    if (parent > 0) facts.push(`${formatShare(sum, tree.total[parent]!)} ${texts.ofParent}`);
    if (layout.zoomNode > 0 && box >= layout.rowStart[layout.zoomRow]!)
      facts.push(`${formatShare(sum, tree.total[layout.zoomNode]!)} ${texts.ofZoom}`);
    if (!tree.isInverted) facts.push(`${texts.self} ${formatValue(self, unit)}, ${formatShare(self, whole)}`);
  }
  const samples = samplesOf(tree, node, counts);
  if (samples) facts.push(texts.samples(samples.map(formatCount)));
  const name = nameOf(tree, node);
  if (name === OTHER) facts.push(texts.serverSum);
  else if (node > 0) facts.push([packageOf(name), texts.kinds[kindOf(name)]].filter(Boolean).join(", "));
  return { name: shownName(tree, node, texts), facts };
}

/** Two lines that are always there, so that nothing moves when the pointer does. */
export function DetailLine(props: Props & { detail?: ComponentChildren }) {
  const said = props.box >= 0 || (props.node ?? -1) >= 0 ? factsOf(props) : null;
  return (
    <div class="flame-detail">
      <div class="flame-detail-name">{said ? <bdi>{said.name}</bdi> : props.detail || props.texts.hint}</div>
      <div class="flame-detail-facts">
        {said?.facts.join(" · ") ?? "\u00a0"}
        {said && props.detail && " · "}
        {said && props.detail}
      </div>
    </div>
  );
}

export function Tooltip(props: Props & { places?: readonly string[]; x: number; y: number }) {
  const { name, facts } = factsOf(props);
  return (
    <div class="flame-tooltip" aria-hidden="true" style={{ left: `${props.x}px`, top: `${props.y}px` }}>
      <div class="flame-tooltip-name">
        <bdi>{name}</bdi>
      </div>
      {[...facts, ...(props.places ?? [])].map((fact) => (
        <div key={fact}>{fact}</div>
      ))}
    </div>
  );
}
