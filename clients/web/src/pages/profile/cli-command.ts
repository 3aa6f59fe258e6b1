// What stands on the page as a command of the client "hearth".
import type { Selection } from "../../api/encode";

function shellQuote(text: string): string {
  return "'" + text.replace(/'/g, "'\\''") + "'";
}

/**
 * The same selection for the command line client; null where it has no words for it: its --function means any of several
 * functions, as do the rows of the page's table, but its chips mean all. Its flame graph takes no functions, its table does.
 */
export function cliCommand(selection: Selection, origin: string, from: string, to: string): string | null {
  const { functions, without, rows = [] } = selection;
  const all = [...functions, ...(rows.find(({ kind }) => kind === "FUNCTION")?.names ?? [])];
  // It reads a name between slashes as a regular expression.
  const isMistaken = rows.some(({ names }) => names.some((name) => /^\/.*\/$/s.test(name)));
  if (functions.length > 1 || (functions.length > 0 && all.length > 1) || isMistaken) {
    return null;
  }
  const command = functions.length + without.length + rows.length > 0 ? "top" : "flame";
  const parts = ["hearth", command, shellQuote(selection.selector), "--url", origin, "--type", shellQuote(selection.type)];
  parts.push("--from", shellQuote(from), "--to", shellQuote(to));
  all.forEach((name) => parts.push("--function", shellQuote(name)));
  rows.filter(({ kind }) => kind !== "FUNCTION").forEach(({ kind, names }) => {
    names.forEach((name) => parts.push("--" + kind.toLowerCase().replace("_", "-"), shellQuote(name)));
  });
  without.forEach((name) => parts.push("--without", shellQuote(name)));
  return parts.join(" ");
}
