// A flame graph whose zoom and search stand in the address.
import { flameTexts, texts } from "../app/settings";
import { FlameGraph } from "../flame/FlameGraph";
import type { FlameTree } from "../flame/tree";
import { change, param, shownPage } from "../url";
import { ExportButton } from "./export-button";
import type { Place } from "./use-place";
import type { Samples } from "./use-samples";

export function zoomOf(name: string): string[] {
  return param(name).split(".").filter((id) => id !== "");
}

export function zoomOfAddress(): string[] {
  return zoomOf("zoom");
}

interface Props {
  tree: FlameTree;
  unit: string;
  /** How many samples its frames have, asked for once one is described. */
  samples?: Samples<FlameTree>;
  /** Where the function under the pointer is written. */
  place?: Place;
}

export function AddressFlame({ tree, unit, samples, place }: Props) {
  const title = `${texts.value.pages[shownPage.value]} ${param("id")}`.trim();
  return (
    <FlameGraph
      tree={tree}
      unit={unit}
      view={{ zoom: zoomOfAddress(), search: param("search"), flip: false, transforms: [] }}
      palette="package"
      texts={flameTexts.value}
      tools={(made) => <ExportButton made={made} title={title} type={unit} />}
      counts={samples?.counts}
      detail={place?.places[0]}
      places={place?.places}
      onHover={(node, of) => {
        if (node !== null) samples?.want();
        place?.onHover(node, of);
      }}
      onView={(next) => change({ zoom: next.zoom.join("."), search: next.search })}
    />
  );
}
