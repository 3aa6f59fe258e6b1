// What the colours mean; a click on a package searches for it.
import { useEffect, useMemo, useState } from "preact/hooks";
import { formatChange, formatCount, formatShare } from "../units";
import {
  changeColour,
  css,
  kindColour,
  KINDS,
  packageColour,
  selfColour,
  type Palette,
  type Rgb,
  type Theme,
} from "./colours";
import { changeDomain, goneFrames, judgementOf } from "./diff";
import { whenIdle } from "./idle";
import { boundedName, packagesOf } from "./names";
import type { FlameTexts } from "./texts";
import type { FlameTree } from "./tree";

interface Props {
  tree: FlameTree;
  /** The same before it was flipped: who has the self does not depend on the view. */
  upright: FlameTree;
  theme: Theme;
  palette: Palette;
  texts: FlameTexts;
  search: string;
  onSearch(text: string): void;
}

const SHOWN_PACKAGES = 8;

function Swatch({ colour, kind }: { colour: Rgb; kind?: "hatched" | "dotted" }) {
  return <i class={`flame-swatch ${kind ?? ""}`} style={{ backgroundColor: css(colour) }} />;
}

interface PackageCost {
  name: string;
  self: number;
}

/** The packages with the largest self. */
function largestPackages(tree: FlameTree): PackageCost[] {
  const selfOfName = new Float64Array(tree.names.length);
  for (let i = 1; i < tree.n; i++) {
    selfOfName[tree.name[i]!]! += tree.self[i]!;
  }
  const selfs = new Map<string, number>();
  packagesOf(tree.names).forEach((name, i) => {
    if (name !== "" && selfOfName[i]! > 0) selfs.set(name, (selfs.get(name) ?? 0) + selfOfName[i]!);
  });
  return [...selfs]
    .map(([name, self]) => ({ name, self }))
    .sort((a, b) => b.self - a.self)
    .slice(0, SHOWN_PACKAGES);
}

function PackageLegend({ upright, theme, search, onSearch }: Props) {
  // Every name and node is read for it: the picture is painted before.
  const [packages, setPackages] = useState<PackageCost[]>([]);
  useEffect(() => whenIdle(() => setPackages(largestPackages(upright))), [upright]);
  return (
    <>
      {packages.map(({ name, self }) => {
        const pattern = "^" + name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
        return (
          <button
            key={name}
            type="button"
            aria-pressed={search === pattern}
            onClick={() => onSearch(search === pattern ? "" : pattern)}
          >
            <Swatch colour={packageColour(theme, name)} />
            <bdi>{boundedName(name, 40)}</bdi> <small>{formatShare(self, upright.total[0]!)}</small>
          </button>
        );
      })}
    </>
  );
}

function DiffLegend({ tree, theme, texts }: Props) {
  const domain = useMemo(() => changeDomain(tree), [tree]);
  const end = (sign: 1 | -1) => `${formatChange(sign * domain, 1).replace("%", "")} ${texts.points}`;
  const gone = useMemo(() => goneFrames(tree), [tree]);
  return (
    <>
      <span>
        <Swatch colour={changeColour(theme, -1)} /> {texts.less} {end(-1)}
      </span>
      <span>
        <Swatch colour={theme.neutral} /> {judgementOf(tree) ? texts.withinNoise : texts.neutral}
      </span>
      <span>
        <Swatch colour={changeColour(theme, 1)} /> {texts.more} {end(1)}
      </span>
      <span>
        <Swatch colour={theme.neutral} kind="hatched" /> {texts.onlyNew}
      </span>
      <span>
        <Swatch colour={theme.neutral} kind="dotted" /> {texts.onlyBefore}
      </span>
      {gone.frames > 0 && <span>{texts.gone(formatCount(gone.frames), (100 * gone.share).toFixed(2))}</span>}
    </>
  );
}

export function Legend(props: Props) {
  const { tree, theme, palette, texts } = props;
  let content;
  if (tree.diff) {
    content = <DiffLegend {...props} />;
  } else if (palette === "kind") {
    content = KINDS.map((kind) => (
      <span key={kind}>
        <Swatch colour={kindColour(theme, kind)} /> {texts.kinds[kind]}
      </span>
    ));
  } else if (palette === "self") {
    content = (
      <>
        <span>
          <Swatch colour={selfColour(theme, 0, 1)} /> {texts.selfLow}
        </span>
        <span>
          <Swatch colour={selfColour(theme, 1, 1)} /> {texts.selfHigh}
        </span>
      </>
    );
  } else {
    content = <PackageLegend {...props} />;
  }
  return <div class="flame-legend">{content}</div>;
}
