// The flame graph of a selection whose zoom and search stand in the address.
import { encodeMerge, type Selection } from "../api/encode";
import { useAnswer } from "../api/use-answer";
import { flameTexts } from "../app/settings";
import { FlameGraph } from "../flame/FlameGraph";
import { loadMerge } from "../flame/load";
import { change, param } from "../url";
import { Failure, Notes } from "./notice";

const MAX_NODES = 16384;

export function MergedFlame({ selection }: { selection: Selection }) {
  const merged = useAnswer(JSON.stringify(selection), (abort) => loadMerge(encodeMerge(selection, MAX_NODES), abort));
  return (
    <section class="views flame" aria-busy={merged.isLoading}>
      <Failure error={merged.error} />
      <Notes notes={merged.value?.notes ?? []} />
      {merged.value && (
        <FlameGraph
          tree={merged.value.tree}
          unit={merged.value.unit}
          view={{ zoom: param("zoom").split(".").filter((id) => id !== ""), search: param("search"), flip: false, transforms: [] }}
          palette="package"
          texts={flameTexts.value}
          onView={(next) => change({ zoom: next.zoom.join("."), search: next.search })}
        />
      )}
    </section>
  );
}
