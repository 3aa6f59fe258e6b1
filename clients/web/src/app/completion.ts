// Where in a label selector somebody types, and what can stand there.
import { formatSelector, parseSelector, quote } from "../selector";

export interface Place {
  kind: "name" | "operator" | "value" | "end";
  // The characters that a choice replaces, and those of them that were typed before the caret.
  from: number;
  to: number;
  typed: string;
  // Of a value.
  label: string;
  // The matchers around this place as a selector, which says what is stored beside them.
  others: string;
}

export const OPERATORS = ["=", "!=", "=~", "!~"];

const NAME = /^[a-zA-Z_][a-zA-Z0-9_.]*/;
const OPERATOR = /^(=~|!~|!=|=|!)/;

interface Piece {
  kind: Place["kind"];
  from: number;
  to: number;
  label: string;
}

function skipSpace(text: string, at: number): number {
  while (/\s/.test(text[at] ?? "")) {
    at++;
  }
  return at;
}

function endOfValue(text: string, at: number): number {
  while (at < text.length && text[at] !== '"') {
    at += text[at] === "\\" ? 2 : 1;
  }
  return Math.min(at, text.length);
}

// The piece of the matcher that begins at `at`, up to the one that holds the caret.
function pieceAt(text: string, at: number, caret: number): Piece & { next: number } {
  const start = skipSpace(text, at);
  const name = NAME.exec(text.slice(start))?.[0] ?? "";
  const endOfName = start + name.length;
  if (caret <= endOfName) {
    return { kind: "name", from: Math.min(start, caret), to: endOfName, label: "", next: endOfName };
  }
  const startOfOperator = skipSpace(text, endOfName);
  const operator = OPERATOR.exec(text.slice(startOfOperator))?.[0] ?? "";
  const endOfOperator = startOfOperator + operator.length;
  const open = skipSpace(text, endOfOperator);
  const isOpen = text[open] === '"';
  if (caret < endOfOperator || (caret === endOfOperator && !OPERATORS.includes(operator)) || operator === "") {
    return { kind: "operator", from: startOfOperator, to: endOfOperator, label: name, next: endOfOperator };
  }
  if (!isOpen || caret <= open) {
    return { kind: "value", from: Math.min(caret, open), to: Math.min(caret, open), label: name, next: open };
  }
  const close = endOfValue(text, open + 1);
  if (caret <= close) {
    return { kind: "value", from: open, to: Math.min(close + 1, text.length), label: name, next: close + 1 };
  }
  return { kind: "end", from: caret, to: caret, label: name, next: close + 1 };
}

export function placeOf(text: string, caret: number): Place {
  let matcher = text.indexOf("{") + 1;
  let piece = pieceAt(text, matcher, caret);
  while (piece.kind === "end") {
    const comma = skipSpace(text, piece.next);
    if (text[comma] !== "," || caret <= comma) {
      break;
    }
    matcher = comma + 1;
    piece = pieceAt(text, matcher, caret);
  }
  const quoted = piece.kind === "value" && text[piece.from] === '"';
  const typed = text.slice(piece.from + (quoted ? 1 : 0), caret);
  const { kind, from, to, label } = piece;
  return { kind, from, to, typed: typed.trim(), label, others: othersOf(text, matcher) };
}

// All matchers that are complete, but the one that is being typed.
function othersOf(text: string, matcher: number): string {
  const before = parseSelector(text.slice(0, matcher).replace(/,\s*$/, "") + "}");
  return before ? formatSelector(before) : "{}";
}

// The text after a choice, and where the caret is then. A name is followed by the operator that most people want.
export function choose(text: string, place: Place, chosen: string): { text: string; caret: number } {
  const rest = text.slice(place.to);
  const isOpen = /^\s*["=!]/.test(rest);
  const put = {
    name: isOpen ? chosen : chosen + '="',
    operator: isOpen ? chosen : chosen + '"',
    value: quote(chosen),
    end: chosen,
  }[place.kind];
  const brace = text.includes("{") ? "" : "{";
  const made = brace + text.slice(0, place.from) + put;
  return { text: made + rest, caret: made.length };
}

// Choices with what was typed in them: those that begin with it first, and otherwise as they were given.
export function matching(choices: string[], typed: string, limit: number): string[] {
  const wanted = typed.toLowerCase();
  const found = choices.filter((choice) => choice.toLowerCase().includes(wanted));
  const begins = (choice: string) => choice.toLowerCase().startsWith(wanted);
  return [...found.filter(begins), ...found.filter((choice) => !begins(choice))].slice(0, limit);
}

// The selector with room for one more matcher at its end, and where the caret is then.
export function withRoom(text: string): { text: string; caret: number } {
  const inner = text.trim().replace(/^\{/, "").replace(/,?\s*\}$/, "");
  const begun = "{" + inner + (inner.trim() === "" ? "" : ", ");
  return { text: begun + "}", caret: begun.length };
}

// What somebody typed, with the braces that they left out and without a comma at the end.
export function closed(text: string): string {
  const typed = text.trim();
  if (typed.includes("{") && !typed.startsWith("{")) {
    return typed;
  }
  const inner = typed.replace(/^\{/, "").replace(/\}$/, "").replace(/[,\s]+$/, "");
  return "{" + inner + "}";
}
