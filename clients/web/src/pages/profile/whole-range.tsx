// The way back to the range that the first selection on the chart replaced.
import { askingTexts } from "../../app/asking-texts";
import { change, param } from "../../url";

export function showWholeRange(): void {
  const [from, to] = param("whole").split(" ");
  if (from && to) {
    change({ from, to, whole: "" });
  }
}

export function WholeRange() {
  const words = askingTexts.value.timeline;
  return param("whole") === "" ? null : (
    <button type="button" title={words.resetHint} onClick={showWholeRange}>
      {words.reset}
    </button>
  );
}
