// Which type counts the samples of another one.
import type { ProfileType } from "../../app/question";

/** Finds the type that counts the samples of the same profiles; undefined if they lack it or `type` itself counts them. */
export function samplesType(types: ProfileType[], type: string): string | undefined {
  const [name, , , ...period] = type.split(":");
  const isSibling = ({ ID }: ProfileType) => ID.split(":")[0] === name && ID.split(":").slice(3).join(":") === period.join(":");
  const found = types.find((each) => each.sampleType === "samples" && each.sampleUnit === "count" && isSibling(each));
  return found && found.ID !== type ? found.ID : undefined;
}
