// The selector that the server refused, with a caret below the place where it stopped reading.
import { ApiError } from "../api/connect";
import { pointer } from "./pointer";

export function SelectorCaret({ text, error }: { text: string; error: Error }) {
  const offset = error instanceof ApiError ? error.selectorOffset : undefined;
  return offset === undefined ? null : <pre class="code">{text + "\n" + pointer(text, offset)}</pre>;
}
