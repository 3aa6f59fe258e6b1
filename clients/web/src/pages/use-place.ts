// Where the function under the pointer is written: its most expensive line, its binary and the build id of that. Answers with trees
// have names alone, so the server is asked once the pointer rests.
import { useRef, useState } from "preact/hooks";
import type { Selection } from "../api/encode";
import { askLines, placesOf } from "../api/functions";
import { useAnswer } from "../api/use-answer";
import { flameTexts } from "../app/settings";
import { visibleName } from "../flame/names";
import { nameOf, type FlameTree } from "../flame/tree";

const REST_MS = 300;

export interface Place {
  places: string[];
  onHover(node: number | null, tree: FlameTree): void;
}

/** `key` is what the selection depends on besides times that move. */
export function usePlace(asked: { selection: Selection; key: string } | null): Place {
  const [name, setName] = useState("");
  const timer = useRef(0);
  const found = useAnswer(asked && name !== "" ? `${asked.key} ${name}` : null, async (abort) => {
    const { type, selector, startMs, endMs } = asked!.selection;
    const { lines = [] } = await askLines({ type, selector, span: { startMs, endMs } }, name, abort);
    const [largest] = lines.sort((a, b) => Number(b.total ?? 0) - Number(a.total ?? 0));
    return { name, largest };
  });
  const line = found.value?.name === name ? found.value.largest : undefined;
  return {
    places: line ? placesOf(line, flameTexts.value.buildId).map(visibleName) : [],
    onHover: (node, tree) => {
      clearTimeout(timer.current);
      const pointed = node ? nameOf(tree, node) : "";
      if (pointed !== name) {
        setName("");
        timer.current = window.setTimeout(() => setName(pointed), REST_MS);
      }
    },
  };
}
