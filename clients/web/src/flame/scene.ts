// What a picture is made of, decided once for canvas and SVG: the fill, pattern and text of each box.
import { formatShare, formatValue } from "../units";
import { colourOf, desaturated, diffColour, nameColour, numberOf, selfColour, textOn, type Palette, type Rgb, type Theme } from "./colours";
import { changeDomain, changeOf } from "./diff";
import { fitLabel, labelOf, type Label } from "./label";
import { CULLED, type Layout } from "./layout";
import { isMatch, type Matches } from "./search";
import { nameOf, OTHER, type FlameTree } from "./tree";

type Pattern = "none" | "hatched" | "dotted";

/** Pixels from which a box has text, and from which the value stands behind the name. */
const TEXT_WIDTH = 24;
const VALUE_WIDTH = 160;
export const TEXT_PADDING = 4;

interface BoxText {
  name: string;
  /** Behind the name, where both fit. */
  value: string;
  /** Columns before the value. */
  columns: number;
}

/** One pixel of background stays between boxes, as long as more of the box remains than of the gap. */
export function drawnWidth(width: number): number {
  return width < 3 ? width : width - 1;
}

/** What follows from a name alone, found once for all pictures of the same names. */
interface NameLooks {
  labels: (Label | undefined)[];
  /** Numbers of colours; 0: not decided yet. */
  fills: Uint32Array;
  /** What the fills depend on. */
  theme: Theme;
  palette: Palette;
}

const looks = new WeakMap<readonly string[], NameLooks>();

function looksOf(names: readonly string[], theme: Theme, palette: Palette): NameLooks {
  const known = looks.get(names);
  if (known?.theme === theme && known.palette === palette) {
    return known;
  }
  // Of its full length from the start: an array that is filled here and there becomes a table of hashes.
  const labels = known?.labels ?? new Array<Label | undefined>(names.length).fill(undefined);
  const made = { labels, fills: new Uint32Array(names.length), theme, palette };
  looks.set(names, made);
  return made;
}

/** What colours are measured by, found once for all zooms of a tree. */
const scales = new WeakMap<FlameTree, { domain: number; largestSelf: number }>();

function scaleOf(tree: FlameTree): { domain: number; largestSelf: number } {
  const known = scales.get(tree) ?? { domain: changeDomain(tree), largestSelf: tree.self.reduce((a, b) => Math.max(a, b), 0) };
  scales.set(tree, known);
  return known;
}

/** By theme, then by the number of the fill. */
const textColours = new Map<Theme, (Rgb | undefined)[]>();

export class Scene {
  private readonly ofNames: NameLooks;
  private readonly rootLabel: Label;
  private readonly boxFills: Uint32Array;
  private readonly unmatched: Rgb;

  constructor(
    readonly tree: FlameTree,
    readonly layout: Layout,
    readonly theme: Theme,
    readonly palette: Palette,
    readonly unit: string,
    readonly matches: Matches | null,
    private readonly rootName: string,
  ) {
    this.ofNames = looksOf(tree.names, theme, palette);
    this.boxFills = new Uint32Array(layout.n);
    this.rootLabel = labelOf(rootName);
    this.unmatched = desaturated(theme);
  }

  inTheme(theme: Theme): Scene {
    const { tree, layout, palette, unit, matches, rootName } = this;
    return theme === this.theme ? this : new Scene(tree, layout, theme, palette, unit, matches, rootName);
  }

  fill(box: number): Rgb {
    return colourOf(this.fillNumber(box));
  }

  /** The number of the box's colour. */
  fillNumber(box: number): number {
    const known = this.boxFills[box]!;
    return known !== 0 ? known : (this.boxFills[box] = this.decideFill(box));
  }

  private decideFill(box: number): number {
    const node = this.layout.node[box]!;
    if (node <= 0 || this.matches || this.tree.diff || this.palette === "self") return numberOf(this.nodeColour(node));
    const { fills } = this.ofNames;
    const name = this.tree.name[node]!;
    const known = fills[name]!;
    return known !== 0 ? known : (fills[name] = numberOf(nameColour(this.theme, this.palette, this.tree.names[name]!)));
  }

  private nodeColour(node: number): Rgb {
    if (node === CULLED) return this.theme.culled;
    if (node === 0) return this.theme.root;
    if (this.matches) {
      return isMatch(this.tree, this.matches, node) ? this.theme.match : this.unmatched;
    }
    return this.tree.diff
      ? diffColour(this.theme, this.tree, node, scaleOf(this.tree).domain)
      : selfColour(this.theme, this.tree.self[node]!, scaleOf(this.tree).largestSelf);
  }

  /** Hatched: what one side alone has, or what the server summed. Dotted: what is gone. */
  pattern(box: number): Pattern {
    const node = this.layout.node[box]!;
    if (node === CULLED || node === 0) return "none";
    if (nameOf(this.tree, node) === OTHER) return "hatched";
    const change = changeOf(this.tree, node);
    return change?.isNew ? "hatched" : change?.isGone ? "dotted" : "none";
  }

  isAncestor(box: number): boolean {
    return box < this.layout.rowStart[this.layout.zoomRow]!;
  }

  textColour(fill: Rgb): Rgb {
    const ofTheme = textColours.get(this.theme) ?? [];
    textColours.set(this.theme, ofTheme);
    return (ofTheme[numberOf(fill)] ??= textOn(this.theme, fill));
  }

  /** In a diff the shares of both sides, because their sum answers no question. */
  private valueText(node: number): string {
    const change = changeOf(this.tree, node);
    if (change) {
      return `${formatShare(change.left, 1)} → ${formatShare(change.right, 1)}`;
    }
    const total = this.tree.total[node]!;
    return `${formatValue(total, this.unit)}  ${formatShare(total, this.tree.total[0]!)}`;
  }

  /** null where nothing fits. `advance` is the width of one column. */
  text(box: number, width: number, advance: number): BoxText | null {
    const node = this.layout.node[box]!;
    if (node === CULLED || width < TEXT_WIDTH) {
      return null;
    }
    const columns = Math.floor((width - 2 * TEXT_PADDING) / advance);
    const nameIndex = this.tree.name[node]!;
    const label = node === 0 ? this.rootLabel : (this.ofNames.labels[nameIndex] ??= labelOf(this.tree.names[nameIndex]!));
    const name = fitLabel(label, columns);
    if (name === "") {
      return null;
    }
    const value = width < VALUE_WIDTH ? "" : "  " + this.valueText(node);
    return {
      name,
      value: name === label.text && label.columns + value.length <= columns ? value : "",
      columns: label.columns,
    };
  }
}
