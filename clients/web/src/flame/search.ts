// Search looks at distinct names and never at nodes' texts: a million nodes have some thousand names.
import { functionsOf, type FunctionRow } from "./functions";
import type { FlameTree } from "./tree";

export interface Matches {
  /** By name index: 1 if it matches. */
  names: Uint8Array;
  functions: number;
  frames: number;
  /** Sum of the outermost matches: what is below another match is already in it. */
  total: number;
  /** The text is no regular expression and was searched for as it stands. */
  isLiteral: boolean;
}

/** Capitals in the text ask for capitals; without any, case does not matter. */
function patternOf(text: string): { pattern: RegExp; isLiteral: boolean } {
  const flags = /\p{Lu}/u.test(text) ? "u" : "iu";
  try {
    return { pattern: new RegExp(text, flags), isLiteral: false };
  } catch {
    return { pattern: new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), flags), isLiteral: true };
  }
}

/** null if there is nothing to search for. */
export function searchTree(tree: FlameTree, text: string): Matches | null {
  if (text === "") {
    return null;
  }
  const { pattern, isLiteral } = patternOf(text);
  const names = Uint8Array.from(tree.names, (name) => Number(pattern.test(name)));
  const isBelow = new Uint8Array(tree.n);
  const seen = new Uint8Array(tree.names.length);
  let functions = 0;
  let frames = 0;
  let total = 0;
  // The root is not a function, even if its name matches.
  for (let i = 1; i < tree.n; i++) {
    const name = tree.name[i]!;
    const wasBelow = isBelow[tree.parent[i]!]!;
    isBelow[i] = wasBelow | names[name]!;
    if (names[name]) {
      frames++;
      if (!wasBelow) total += tree.total[i]!;
      if (!seen[name]) functions++;
      seen[name] = 1;
    }
  }
  return { names, functions, frames, total, isLiteral };
}

interface MatchedFunction extends FunctionRow {
  /** The node of its frame with the largest total. */
  largest: number;
}

/** The functions that match, the one with the largest total first. */
export function matchedFunctions(tree: FlameTree, matches: Matches): MatchedFunction[] {
  const largest = new Map<string, number>();
  for (let i = 1; i < tree.n; i++) {
    const name = tree.names[tree.name[i]!]!;
    if (matches.names[tree.name[i]!] && !(tree.total[largest.get(name) ?? i]! > tree.total[i]!)) {
      largest.set(name, i);
    }
  }
  return functionsOf(tree)
    .flatMap((row) => (largest.has(row.name) ? [{ ...row, largest: largest.get(row.name)! }] : []))
    .sort((a, b) => b.total - a.total);
}

export function isMatch(tree: FlameTree, matches: Matches, node: number): boolean {
  return node > 0 && matches.names[tree.name[node]!] === 1;
}
