// The functions that a search found, the most expensive first. A click zooms to the largest frame of one.
import { useMemo, useState } from "preact/hooks";
import { formatCount, formatShare, formatValue } from "../units";
import { boundedName } from "./names";
import { matchedFunctions, type Matches } from "./search";
import type { FlameTexts } from "./texts";
import type { FlameTree } from "./tree";

const MAX_ROWS = 50;
const LONGEST_NAME = 200;

interface Props {
  tree: FlameTree;
  matches: Matches;
  unit: string;
  texts: FlameTexts;
  onZoom(node: number): void;
}

export function MatchList({ tree, matches, unit, texts, onZoom }: Props) {
  const [isOpen, setIsOpen] = useState(false);
  // A tree of a million nodes is searched with each letter, and listed only if somebody wants to read it.
  const rows = useMemo(() => (isOpen ? matchedFunctions(tree, matches) : []), [isOpen, tree, matches]);
  return (
    <details class="flame-match-list" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{texts.matchList}</summary>
      <ol>
        {rows.slice(0, MAX_ROWS).map(({ name, total, frames, largest }) => (
          <li key={name}>
            <button type="button" onClick={() => onZoom(largest)}>
              <bdi>{boundedName(name, LONGEST_NAME)}</bdi>
            </button>{" "}
            {texts.match(formatCount(frames), formatValue(total, unit), formatShare(total, tree.total[0]!))}
          </li>
        ))}
      </ol>
      {rows.length > MAX_ROWS && <p>{texts.moreMatches(formatCount(rows.length - MAX_ROWS))}</p>}
    </details>
  );
}
