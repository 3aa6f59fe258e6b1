// Callers and callees of one function, as the server answers them: exact, however large the profile is.
import { useMemo, useState } from "preact/hooks";
import type { Selection } from "../api/encode";
import { askSandwich, type Sandwich } from "../api/functions";
import type { Answer } from "../api/use-answer";
import { flameTexts, texts } from "../app/settings";
import { copyText } from "../copy";
import { FlameGraph } from "../flame/FlameGraph";
import { boundedName } from "../flame/names";
import { treeOfNodes } from "../flame/nodes";
import type { MenuRequest } from "../flame/stage";
import type { FlameTree } from "../flame/tree";
import { change, go, param, question } from "../url";
import { zoomOf } from "./address-flame";
import "./callers-callees.css";
import { ExportButton } from "./export-button";
import { Menu } from "./menu";
import { Failure } from "./notice";
import { useSamplesOf } from "./use-samples";

// Pixels of what stands around a flame graph, and of its rows.
const AROUND_GRAPH = 141;
const MIN_GRAPH = 160;
const MAX_GRAPH = 320;
const ROW = 20;
const LONGEST_NAME = 200;
// Of each side, when samples are counted: twice what the pictures have, as the frames that are cut are not the same.
const MAX_COUNTED_NODES = 8192;

export type FunctionPart = "lines" | "spans";

export function goToFunction(name: string, part: FunctionPart | "" = ""): void {
  go("function", { ...question(), by: param("by"), function: name, part });
}

interface Props {
  name: string;
  sandwich: Answer<Sandwich>;
  // What the sandwich answers, by its key, and the profile types that are there.
  question: { selection: Selection; key: string | null; types: readonly string[] };
  // Parameters of the address that hold the zoom of each graph.
  zooms: [string, string];
  // Takes frames out of both trees, if some are hidden; another function hides others.
  without?(tree: FlameTree): FlameTree;
}

type Trees = [callers: FlameTree, callees: FlameTree];

function treesOf({ callers = [], callees = [] }: Sandwich, without: Props["without"]): Trees {
  const [up, down] = [callers, callees].map(treeOfNodes).map((tree) => (without ? without(tree) : tree));
  return [{ ...up!, isInverted: true }, down!];
}

export function CallersAndCallees({ name, sandwich, question: { selection, key, types }, zooms, without }: Props) {
  const words = texts.value;
  const [menu, setMenu] = useState<MenuRequest | null>(null);
  const { unit = "" } = sandwich.value ?? {};
  const trees = useMemo(() => treesOf(sandwich.value ?? {}, without), [sandwich.value, without]);
  const { counts, want } = useSamplesOf({ key, types, type: selection.type, zooms }, (type, abort) =>
    askSandwich({ ...selection, type }, name, abort, MAX_COUNTED_NODES),
  );
  const counted = useMemo(() => counts && treesOf(counts, without), [counts, without]);
  const rows = Math.max(...trees.map((tree) => tree.maxDepth + 1));
  const height = AROUND_GRAPH + Math.min(MAX_GRAPH, Math.max(MIN_GRAPH, rows * ROW));
  const shown = boundedName(name, LONGEST_NAME);
  const titles = [words.profile.callers(shown), words.profile.callees(shown)];
  const said = { ...flameTexts.value, root: shown, ofAll: words.comparing.ofFunction };
  return (
    <section class="callers-callees" aria-busy={sandwich.isLoading}>
      <Failure error={sandwich.error} />
      <div class="function-calls">
        {sandwich.value &&
          trees.map((tree, i) => (
            <div key={zooms[i]} style={{ height: `${height}px` }}>
              <h2>{titles[i]}</h2>
              <FlameGraph
                tree={tree}
                unit={unit}
                view={{ zoom: zoomOf(zooms[i]!), search: param("search"), flip: false, transforms: [] }}
                palette="package"
                texts={{ ...said, label: titles[i]! }}
                tools={(made) => <ExportButton made={made} title={titles[i]!} type={unit} />}
                onView={(view) => change({ [zooms[i]!]: view.zoom.join("."), search: view.search })}
                onMenu={setMenu}
                counts={counted?.[i]}
                onHover={(node) => node !== null && want()}
              />
            </div>
          ))}
      </div>
      {menu && (
        <Menu
          items={[
            { name: words.comparing.showHistory, run: () => goToFunction(menu.name) },
            { name: words.menu.copyName, run: () => void copyText(menu.name) },
          ]}
          x={menu.x}
          y={menu.y}
          label={menu.name}
          onClose={() => setMenu(null)}
        />
      )}
    </section>
  );
}
