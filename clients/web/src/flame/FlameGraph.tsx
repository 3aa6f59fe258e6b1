// The flame graph with what stands around it: path, detail line, search result, legend.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { formatCount, formatShare, formatValue } from "../units";
import { DARK, LIGHT, type Palette, type Theme } from "./colours";
import viewerUrl from "../../../viewer/viewer.html?url";
import { collapsedText, htmlText, pngBlob, speedscopeText, svgText } from "./export";
import { DetailLine } from "./facts";
import "./flame.css";
import { layoutTree, type Layout } from "./layout";
import { Legend } from "./legend";
import { MatchList } from "./match-list";
import { PathBar } from "./path";
import { gzipBlob, pprofBytes } from "./pprof";
import { Scene } from "./scene";
import { searchTree } from "./search";
import { Stage, type MenuRequest } from "./stage";
import type { FlameTexts } from "./texts";
import { applyTransforms, flip, type Transform } from "./transforms";
import { inOrder, largestFirst, nodeAt, pathOf, type FlameTree } from "./tree";

export interface FlameView {
  /** Stable ids of frames, root first; the root itself is left out. */
  zoom: string[];
  search: string;
  flip: boolean;
  transforms: Transform[];
}

/** Files of what is seen. */
export interface FlameExports {
  png(): Promise<Blob>;
  svg(title: string): string;
  html(title: string, type: string): Promise<string>;
  collapsed(): string;
  speedscope(title: string): string;
  /** `type` names what was measured. */
  pprof(type: string): Promise<Blob>;
}

interface Props {
  tree: FlameTree;
  unit: string;
  view: FlameView;
  palette: Palette;
  texts: FlameTexts;
  /** The name of the picture for assistive technology, where a page has several. */
  label?: string;
  compact?: boolean;
  /** Siblings in the order of their names, as pictures that are compared need it. */
  isStableOrder?: boolean;
  /** What the page knows about the frame under the pointer besides its numbers, at the end of the detail line. */
  detail?: ComponentChildren;
  /** Where the function under the pointer is written, for the tooltip. */
  places?: readonly string[];
  /** For pictures that share the pointer: a function to outline, and a frame to describe while none is pointed at here. */
  outlined?: string | null;
  described?: number | null;
  /** Controls of the page at the end of the path. */
  tools?(exports: FlameExports): ComponentChildren;
  /** The same question of a type that counts samples, before transforms. */
  counts?: FlameTree;
  onView(view: FlameView): void;
  /** `tree` is the transformed one that `node` counts in. */
  onMenu?(request: MenuRequest): void;
  onHover?(node: number | null, tree: FlameTree): void;
}

const ROW = 20;
const COMPACT_ROW = 16;

/** The theme that the page shows, as its root element says. */
function useTheme(): Theme {
  const read = () => (document.documentElement.dataset.theme === "dark" ? DARK : LIGHT);
  const [theme, setTheme] = useState(read);
  useEffect(() => {
    const observer = new MutationObserver(() => setTheme(read()));
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => observer.disconnect();
  }, []);
  return theme;
}

export function FlameGraph(props: Props) {
  const { unit, view, palette, texts, onView } = props;
  const theme = useTheme();
  const [width, setWidth] = useState(0);
  const [pointed, setPointed] = useState<{ layout: Layout; box: number } | null>(null);
  const label = props.label ?? texts.label;
  const rowHeight = props.compact ? COMPACT_ROW : ROW;

  const upright = useMemo(
    () => applyTransforms(props.tree, view.transforms),
    [props.tree, JSON.stringify(view.transforms)],
  );
  const tree = useMemo(() => {
    const shown = view.flip ? flip(upright) : upright;
    return shown.diff || props.isStableOrder ? inOrder(shown) : largestFirst(shown);
  }, [upright, view.flip, props.isStableOrder]);
  const counts = useMemo(() => {
    const counted = props.counts && applyTransforms(props.counts, view.transforms);
    return counted && view.flip ? flip(counted) : counted;
  }, [props.counts, JSON.stringify(view.transforms), view.flip]);
  const zoomNode = useMemo(() => nodeAt(tree, view.zoom), [tree, view.zoom.join("/")]);
  const matches = useMemo(() => searchTree(tree, view.search), [tree, view.search]);
  const layout = useMemo(() => layoutTree(tree, zoomNode, width), [tree, zoomNode, width]);
  const scene = useMemo(
    () => new Scene(tree, layout, theme, palette, unit, matches, texts.root),
    [tree, layout, theme, palette, unit, matches, texts.root],
  );
  // Boxes are numbered by layout: a number of the one before means nothing.
  const hovered = pointed?.layout === layout ? pointed.box : -1;
  const described = props.described ?? (zoomNode > 0 && !props.detail ? zoomNode : -1);

  const exports: FlameExports = {
    png: () => pngBlob(scene, width, rowHeight),
    svg: (title) => svgText(scene, width, rowHeight, title),
    html: async (title, type) => {
      const page = await (await fetch(viewerUrl)).text();
      return htmlText(page, tree, zoomNode, view.search, unit, title, type, texts);
    },
    collapsed: () => collapsedText(tree, zoomNode),
    speedscope: (title) => speedscopeText(tree, zoomNode, unit, title, texts),
    pprof: (type) => gzipBlob(pprofBytes(tree, zoomNode, type, unit, texts)),
  };

  const zoomTo = (node: number) => {
    if (node !== zoomNode) onView({ ...view, zoom: pathOf(tree, node) });
  };
  const hover = (box: number) => {
    setPointed({ layout, box });
    props.onHover?.(box >= 0 && layout.node[box]! >= 0 ? layout.node[box]! : null, tree);
  };

  return (
    <section class="flame" aria-label={label}>
      <DetailLine tree={tree} layout={layout} box={hovered} node={described} unit={unit} texts={texts} counts={counts} detail={props.detail} />
      <PathBar tree={tree} zoomNode={zoomNode} view={view} texts={texts} label={label} tools={props.tools?.(exports)} onView={onView} />
      {matches && (
        <p class="flame-matches" role="status">
          {texts.matches(
            formatCount(matches.frames),
            formatCount(matches.functions),
            formatValue(matches.total, unit),
            formatShare(matches.total, tree.total[0]!),
          )}
          {matches.isLiteral && ` (${texts.literal})`}
        </p>
      )}
      {matches && matches.functions > 0 && <MatchList tree={tree} matches={matches} unit={unit} texts={texts} onZoom={zoomTo} />}
      {tree.total[0] === 0 && <p class="flame-matches">{texts.empty}</p>}
      <Stage
        scene={scene}
        rowHeight={rowHeight}
        hovered={hovered}
        outlined={props.outlined ?? null}
        label={label}
        texts={texts}
        counts={counts}
        places={props.places}
        onWidth={setWidth}
        onHover={hover}
        onZoom={zoomTo}
        onMenu={(request) => props.onMenu?.(request)}
      />
      <Legend
        tree={tree}
        upright={upright}
        theme={theme}
        palette={palette}
        texts={texts}
        search={view.search}
        onSearch={(search) => onView({ ...view, search })}
      />
    </section>
  );
}
