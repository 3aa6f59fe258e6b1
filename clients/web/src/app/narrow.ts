// Whether the window is as narrow as a telephone: the bars fold into one, and tools behind a word.
import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 700px)");

export const isNarrow = signal(query.matches);
query.addEventListener("change", () => (isNarrow.value = query.matches));
