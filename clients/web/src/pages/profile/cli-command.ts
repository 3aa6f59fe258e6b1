// What stands on the page as a command of the client "hearth".
import type { RowFilter, Selection, TopKind } from "../../api/encode";
import type { TopSort } from "../../api/top";
import type { Transform, TransformKind } from "../../flame/transforms";

// The most values that the command line takes of one option.
const MAX_VALUES = 64;

const TRANSFORM_OPTIONS: Record<TransformKind, string> = {
  focus: "--focus",
  hide: "--hide",
  recursion: "--collapse-recursion",
  module: "--collapse-package",
};

/** How the selection is looked at. */
export type Look =
  // Zoomed to the frame at the end of `callSite`, root first.
  | { view: "flame"; callSite: string[]; transforms: Transform[] }
  | { view: "table"; kind: TopKind; filter: string; sort: TopSort }
  | { view: "sandwich"; name: string };

function shellQuote(text: string): string {
  return "'" + text.replace(/'/g, "'\\''") + "'";
}

// It reads a name between slashes as a regular expression.
function isExpression(name: string): boolean {
  return /^\/.+\/$/s.test(name);
}

function kindOption(kind: TopKind): string {
  return kind.toLowerCase().replace("_", "-");
}

function lookOptions(look: Look): [string, string][] {
  if (look.view === "table") {
    return [
      ...(look.kind === "FUNCTION" ? [] : [["--by-kind", kindOption(look.kind)] as [string, string]]),
      ...(look.filter === "" ? [] : [["--search", look.filter] as [string, string]]),
      ...(look.sort === "self" ? [] : [["--sort", look.sort] as [string, string]]),
    ];
  }
  if (look.view === "sandwich") {
    return [];
  }
  // Call sites are of stored stack traces: a zoom into transformed ones has none.
  const callSite = look.transforms.length === 0 && look.callSite.length <= MAX_VALUES ? look.callSite : [];
  return [
    ...callSite.map((name): [string, string] => ["--call-site", name]),
    ...look.transforms.map(({ kind, name }): [string, string] => [TRANSFORM_OPTIONS[kind], name]),
  ];
}

function rowOptions(rows: RowFilter[]): [string, string][] {
  return rows.flatMap(({ kind, names }) => names.map((name): [string, string] => ["--" + kindOption(kind), name]));
}

/**
 * The same selection and look for the command line client; null where it has no words for it: its --function means any of
 * several functions, as do the rows of the page's table, but its chips mean all.
 */
export function cliCommand(selection: Selection, look: Look, origin: string, from: string, to: string): string | null {
  const { functions, without, rows: all = [] } = selection;
  // The rows that were chosen in a table do not narrow it.
  const rows = look.view === "table" ? all.filter(({ kind }) => kind !== look.kind) : all;
  const transforms = look.view === "flame" ? look.transforms : [];
  const rowFunctions = rows.find(({ kind }) => kind === "FUNCTION")?.names ?? [];
  const isMistaken =
    rows.some(({ names }) => names.some(isExpression)) ||
    transforms.some(({ kind, name }) => name === "" || ((kind === "focus" || kind === "hide") && isExpression(name)));
  if (functions.length > 1 || (functions.length > 0 && rowFunctions.length > 0) || isMistaken || transforms.length > MAX_VALUES) {
    return null;
  }

  const command = look.view === "table" ? ["top"] : look.view === "sandwich" ? ["sandwich", shellQuote(look.name)] : ["flame"];
  const options: [string, string][] = [
    ["--type", selection.type],
    ["--from", from],
    ["--to", to],
    ...functions.map((name): [string, string] => ["--function", name]),
    ...rowOptions(rows),
    ...without.map((name): [string, string] => ["--without", name]),
    ...lookOptions(look),
  ];
  return ["hearth", ...command, shellQuote(selection.selector), "--url", origin, ...options.flatMap(([flag, value]) => [flag, shellQuote(value)])].join(" ");
}
