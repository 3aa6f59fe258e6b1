// The picture for assistive technology: the cursor's ancestors, siblings and children as rows of a tree grid. The canvas
// and this grid share one cursor; the grid has the focus. A row has a name of its own: that of its cells would run together.
import type { Ref } from "preact";
import { useMemo } from "preact/hooks";
import { formatCount, formatShare, formatValue } from "../units";
import { shownName } from "./facts";
import type { FlameTexts } from "./texts";
import { ancestorsOf, type FlameTree } from "./tree";

/** Of each family around the cursor. */
const LONGEST_FAMILY = 25;

function childrenOf(tree: FlameTree, parent: number): number[] {
  const children: number[] = [];
  for (let child = tree.firstChild[parent]!; child >= 0; child = tree.nextSibling[child]!) {
    children.push(child);
  }
  return children;
}

interface Row {
  node: number;
  position: number;
  size: number;
}

/** Rows in the order of a tree that is open along the cursor's path. */
function twinRows(tree: FlameTree, cursor: number): Row[] {
  const rows: Row[] = [];
  const path = ancestorsOf(tree, cursor);
  for (const node of path.slice(0, -1)) {
    const family = node === 0 ? [0] : childrenOf(tree, tree.parent[node]!);
    rows.push({ node, position: family.indexOf(node) + 1, size: family.length });
  }
  const siblings = cursor === 0 ? [0] : childrenOf(tree, tree.parent[cursor]!);
  const from = Math.max(0, siblings.indexOf(cursor) - LONGEST_FAMILY);
  siblings.slice(from, from + 2 * LONGEST_FAMILY).forEach((node, i) => {
    rows.push({ node, position: from + i + 1, size: siblings.length });
    if (node === cursor) {
      const children = childrenOf(tree, cursor);
      children
        .slice(0, LONGEST_FAMILY)
        .forEach((child, c) => rows.push({ node: child, position: c + 1, size: children.length }));
    }
  });
  return rows;
}

interface Props {
  tree: FlameTree;
  cursor: number;
  unit: string;
  texts: FlameTexts;
  label: string;
  id: string;
  gridRef: Ref<HTMLDivElement>;
}

export function Twin({ tree, cursor, unit, texts, label, id, gridRef }: Props) {
  const rows = useMemo(() => twinRows(tree, cursor), [tree, cursor]);
  const rowId = (node: number) => `${id}-${node}`;
  const share = (value: number) => formatShare(value, tree.total[0]!);
  const totalOf = (node: number) => `${formatValue(tree.total[node]!, unit)}, ${share(tree.total[node]!)}`;
  const selfOf = (node: number) => (tree.isInverted ? "—" : `${formatValue(tree.self[node]!, unit)}, ${share(tree.self[node]!)}`);
  const sentence = texts.frame(
    shownName(tree, cursor, texts),
    share(tree.total[cursor]!),
    tree.isInverted ? null : share(tree.self[cursor]!),
    formatCount(childrenOf(tree, cursor).length),
  );
  return (
    <>
      <div
        ref={gridRef}
        class="flame-twin"
        role="treegrid"
        tabIndex={0}
        aria-label={label}
        aria-activedescendant={rowId(cursor)}
      >
        <div role="row">
          <span role="columnheader">{texts.function}</span>
          <span role="columnheader">{texts.total}</span>
          <span role="columnheader">{texts.self}</span>
        </div>
        {rows.map(({ node, position, size }) => (
          <div
            key={node}
            id={rowId(node)}
            role="row"
            aria-label={[shownName(tree, node, texts), totalOf(node), selfOf(node)].join(", ")}
            aria-level={tree.depth[node]! + 1}
            aria-posinset={position}
            aria-setsize={size}
            aria-selected={node === cursor}
            aria-expanded={
              tree.firstChild[node]! < 0 ? undefined : tree.depth[node]! < tree.depth[cursor]! || node === cursor
            }
          >
            <span role="gridcell">{shownName(tree, node, texts)}</span>{" "}
            <span role="gridcell">{totalOf(node)}</span> <span role="gridcell">{selfOf(node)}</span>
          </div>
        ))}
      </div>
      <div class="flame-live" aria-live="polite">
        {sentence}
      </div>
    </>
  );
}
