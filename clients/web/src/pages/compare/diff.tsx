// Two ranges compared: the sentence first, then what changed most, then the picture.
import { chooseType, selector, typeName, useProfileTypes } from "../../app/question";
import { texts } from "../../app/settings";
import { AddressFlame } from "../address-flame";
import { DiffTimeline } from "./diff-timeline";
import { Empty } from "../empty";
import { Failure, Notes } from "../notice";
import { keyOfSides, RangeOf, readSides, SidesForm, useDiff, useDiffPlace, useDiffSamples } from "./two-sides";
import { Changes, Verdict } from "./verdict";

export function Diff() {
  const words = texts.value.diff;
  const types = useProfileTypes();
  const type = chooseType(types.value ?? []);
  const sides = readSides();
  const { baseline, comparison } = sides;
  const compared = useDiff(type, sides, true);
  const samples = useDiffSamples(type, sides, types.value ?? []);
  const place = useDiffPlace(type, sides);
  const loaded = compared.value;

  if (types.value?.length === 0) {
    return <Empty />;
  }
  return (
    <section class="diff" aria-busy={compared.isLoading}>
      <div class="headline">
        <h1>{words.title}</h1>
        <RangeOf title={words.baseline} range={baseline.range} />
        <RangeOf title={words.comparison} range={comparison.range} />
        <SidesForm type={type} {...sides} />
      </div>
      <Failure error={types.error ?? compared.error} />
      <Notes notes={loaded?.notes ?? []} />
      {loaded?.tree.diff && type && (
        <>
          <DiffTimeline
            type={type.ID}
            selector={selector.value}
            baseline={baseline.range}
            comparison={comparison.range}
            of={keyOfSides(type, sides)}
          />
          <Verdict loaded={loaded} name={typeName(type)} sides={sides} />
          <Changes tree={loaded.tree} />
          <div class="views flame">
            <AddressFlame tree={loaded.tree} unit={loaded.unit} samples={samples} place={place} />
          </div>
        </>
      )}
    </section>
  );
}
