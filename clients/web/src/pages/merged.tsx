// The flame graph of a selection.
import { encodeMerge, type Selection } from "../api/encode";
import { useAnswer } from "../api/use-answer";
import { loadMerge } from "../flame/load";
import { AddressFlame } from "./address-flame";
import { Failure, Notes } from "./notice";

const MAX_NODES = 16384;

export function MergedFlame({ selection }: { selection: Selection }) {
  const merged = useAnswer(JSON.stringify(selection), (abort) => loadMerge(encodeMerge(selection, MAX_NODES), abort));
  return (
    <section class="views flame" aria-busy={merged.isLoading}>
      <Failure error={merged.error} />
      <Notes notes={merged.value?.notes ?? []} />
      {merged.value && <AddressFlame tree={merged.value.tree} unit={merged.value.unit} />}
    </section>
  );
}
