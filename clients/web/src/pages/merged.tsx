// The flame graph of a selection.
import { encodeMerge, type Selection } from "../api/encode";
import { useAnswer } from "../api/use-answer";
import { loadMerge } from "../flame/load";
import { AddressFlame } from "./address-flame";
import { Failure, Notes } from "./notice";
import { usePlace } from "./use-place";
import { useSamples } from "./use-samples";

const MAX_NODES = 16384;

/** `types` are the ids of the profile types that the same profiles have. */
export function MergedFlame({ selection, types }: { selection: Selection; types: readonly string[] }) {
  const key = JSON.stringify(selection);
  const samples = useSamples(selection, key, types);
  const place = usePlace({ selection, key });
  const merged = useAnswer(key, (abort) => loadMerge(encodeMerge(selection, MAX_NODES), abort));
  return (
    <section class="views flame" aria-busy={merged.isLoading}>
      <Failure error={merged.error} />
      <Notes notes={merged.value?.notes ?? []} />
      {merged.value && <AddressFlame tree={merged.value.tree} unit={merged.value.unit} samples={samples} place={place} />}
    </section>
  );
}
