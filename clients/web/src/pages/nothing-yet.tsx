// The sentence in the place of the results of a task while there are none.
import { directingTexts } from "../app/directing-texts";

export function NothingYet({ isOpen }: { isOpen: boolean }) {
  const words = directingTexts.value.tasks;
  return <p class="muted">{isOpen ? words.nothingYet : words.nothing}</p>;
}
