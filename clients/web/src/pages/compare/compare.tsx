// Two selections as two flame graphs with one order of frames, one pointer and one search.
import { useMemo, useState } from "preact/hooks";
import { chooseType, typeName, useProfileTypes } from "../../app/question";
import { flameTexts, texts } from "../../app/settings";
import { changeOf } from "../../flame/diff";
import { FlameGraph, type FlameView } from "../../flame/FlameGraph";
import type { Loaded } from "../../flame/load";
import { boundedName } from "../../flame/names";
import { sideOf, type Side } from "../../flame/side";
import { nameOf, type FlameTree } from "../../flame/tree";
import { formatChange } from "../../units";
import { change, param } from "../../url";
import { zoomOf } from "../address-flame";
import "./compare.css";
import { Empty } from "../empty";
import { Failure, Notes } from "../notice";
import type { Samples } from "../use-samples";
import { costOf, RangeOf, readSides, SidesForm, useDiff, useDiffSamples, type Side as SideOfAddress } from "./two-sides";

const LONGEST_NAME = 200;
const SIDES = ["baseline", "comparison"] as const;

type Place = (typeof SIDES)[number];

interface Pointed {
  place: Place;
  // The tree of both sides, and the node in it.
  both: FlameTree;
  node: number;
}

// One side may be zoomed on its own; linked, both follow the same frames.
function viewOf(place: Place, isLinked: boolean): FlameView {
  const zoom = zoomOf(isLinked || place === "baseline" ? "zoom" : "zoom2");
  return { zoom, search: param("search"), flip: false, transforms: [] };
}

function writeView(place: Place, isLinked: boolean, view: FlameView): void {
  const name = isLinked || place === "baseline" ? "zoom" : "zoom2";
  change({ [name]: view.zoom.join("."), search: view.search });
}

interface PicturesProps {
  loaded: Loaded;
  sides: Record<Place, SideOfAddress>;
  samples: Samples<FlameTree>;
}

function bothSides(both: FlameTree): Record<Place, Side> {
  return { baseline: sideOf(both, "left"), comparison: sideOf(both, "right") };
}

function Pictures({ loaded, sides, samples }: PicturesProps) {
  const words = texts.value.comparing;
  const both = loaded.tree;
  const trees = useMemo(() => bothSides(both), [both]);
  const counts = useMemo(() => samples.counts && bothSides(samples.counts), [samples.counts]);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const isLinked = param("unlinked") !== "1";
  // A frame of an answer before means nothing in this one.
  const node = pointed?.both === both ? pointed.node : -1;
  const points = node > 0 ? changeOf(both, node)!.points : 0;

  return (
    <div class="compared">
      {SIDES.map((place) => {
        const { tree, inDiff, ofDiff } = trees[place];
        const isOther = node > 0 && pointed!.place !== place;
        const name = node > 0 ? nameOf(both, node) : "";
        const isMissing = node > 0 && ofDiff[node]! < 0;
        const title = texts.value.diff[place];
        return (
          <div key={place}>
            <h2>
              <RangeOf title={title} range={sides[place].range} /> <span class="number">{costOf(tree.total[0]!, sides[place], loaded).text}</span>
            </h2>
            <FlameGraph
              tree={tree}
              unit={loaded.unit}
              view={viewOf(place, isLinked)}
              palette="package"
              texts={{ ...flameTexts.value, label: title }}
              isStableOrder
              outlined={isOther ? name : null}
              described={isOther && !isMissing ? ofDiff[node]! : null}
              detail={
                node > 0 &&
                (isMissing
                  ? words.missing(boundedName(name, LONGEST_NAME))
                  : words.change(formatChange(points, 1).replace("%", "")))
              }
              onView={(view) => writeView(place, isLinked, view)}
              counts={counts?.[place].tree}
              onHover={(at) => {
                if (at !== null) samples.want();
                setPointed(at === null ? null : { place, both, node: inDiff[at]! });
              }}
            />
          </div>
        );
      })}
    </div>
  );
}

export function Compare() {
  const words = texts.value.comparing;
  const types = useProfileTypes();
  const type = chooseType(types.value ?? []);
  const sides = readSides();
  const compared = useDiff(type, sides, false);
  const samples = useDiffSamples(type, sides, types.value ?? []);
  const isLinked = param("unlinked") !== "1";

  if (types.value?.length === 0) {
    return <Empty />;
  }
  return (
    <section class="diff" aria-busy={compared.isLoading}>
      <div class="headline">
        <h1>{type ? words.title(typeName(type)) : texts.value.loading}</h1>
        <SidesForm type={type} {...sides} />
      </div>
      <Failure error={types.error ?? compared.error} />
      <Notes notes={compared.value?.notes ?? []} />
      <div class="tools">
        <input
          id="search"
          type="search"
          aria-label={texts.value.search}
          placeholder={words.searchBoth}
          value={param("search")}
          onChange={(event) => change({ search: event.currentTarget.value })}
        />
        <button
          type="button"
          aria-pressed={isLinked}
          title={words.linkedHint}
          onClick={() => change(isLinked ? { unlinked: "1", zoom2: param("zoom") } : { unlinked: "", zoom2: "" })}
        >
          {words.linked}
        </button>
      </div>
      {compared.value && <Pictures loaded={compared.value} sides={sides} samples={samples} />}
    </section>
  );
}
