// What stands on the page as a command of the client "hearth".
import type { Selection } from "./api/encode";

function shellQuote(text: string): string {
  return "'" + text.replace(/'/g, "'\\''") + "'";
}

/**
 * The same selection for the command line client; null where it has no words for it: its --function means any of several
 * functions, the page's chips mean all. Its flame graph takes no functions, its table does.
 */
export function cliCommand(selection: Selection, origin: string, from: string, to: string): string | null {
  const { functions, without } = selection;
  if (functions.length > 1) {
    return null;
  }
  const command = functions.length + without.length > 0 ? "top" : "flame";
  const parts = ["hearth", command, shellQuote(selection.selector), "--url", origin, "--type", shellQuote(selection.type)];
  parts.push("--from", shellQuote(from), "--to", shellQuote(to));
  functions.forEach((name) => parts.push("--function", shellQuote(name)));
  without.forEach((name) => parts.push("--without", shellQuote(name)));
  return parts.join(" ");
}
