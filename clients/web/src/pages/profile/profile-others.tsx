// How much of what is shown the server summed as "other", and the button that loads it.
import { useMemo } from "preact/hooks";
import { askingTexts } from "../../app/asking-texts";
import { nodeAt, type FlameTree } from "../../flame/tree";
import { formatCount, formatShare } from "../../units";
import { othersBelow } from "./graft";
import { listParam, readView } from "./profile-state";
import { loadBelow } from "./profile-tree";

// The server's note on what it cut, which the line below says in the language of the page and with a way out.
const CUT = /^of (\d+) nodes those beyond the largest (\d+) /;

export function otherNotes(notes: string[]): string[] {
  return notes.filter((note) => !CUT.test(note));
}

function framesCut(notes: string[]): number {
  const found = notes.map((note) => CUT.exec(note)).find((match) => match !== null);
  return found ? Number(found[1]) - Number(found[2]) : 0;
}

export function Others({ tree, notes, isLoading }: { tree: FlameTree; notes: string[]; isLoading: boolean }) {
  const words = askingTexts.value.others;
  const { zoom, transforms, flip } = readView();
  // In a tree that was transformed, the zoomed frame is not where the server has it.
  const path = transforms.length > 0 || flip ? "" : zoom.join(".");
  const node = useMemo(() => nodeAt(tree, path === "" ? [] : path.split(".")), [tree, path]);
  const { places, total } = useMemo(() => othersBelow(tree, node), [tree, node]);
  if (places === 0) {
    return null;
  }
  const share = formatShare(total, tree.total[node]);
  const frames = framesCut(notes);
  // The server counts frames for the whole tree alone, and before any subtree was loaded.
  const isWhole = node === 0 && frames > 0 && listParam("full").length === 0;
  return (
    <p class="others note">
      {isWhole ? words.frames(formatCount(frames), share) : words.sum(share, formatCount(places))}{" "}
      <button type="button" disabled={isLoading} onClick={() => loadBelow(tree, node)}>
        {isLoading ? words.loading : words.load}
      </button>
    </p>
  );
}
