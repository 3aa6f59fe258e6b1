// The values of one label that a selector asks for, as a set that values are added to and taken from.
import { formatSelector, parseSelector, type Matcher } from "./selector";

// RE2, which label matchers anchor at both ends.
function escaped(value: string): string {
  return value.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

// The texts that an alternation of plain texts matches; null for any other regular expression.
function alternatives(expression: string): string[] | null {
  const texts = [""];
  for (let i = 0; i < expression.length; i++) {
    const c = expression[i]!;
    if (c === "|") {
      texts.push("");
    } else if (c === "\\" && /[\\^$.*+?()[\]{}|]/.test(expression[i + 1] ?? "")) {
      texts[texts.length - 1] += expression[++i];
    } else if (/[\\^$.*+?()[\]{}]/.test(c)) {
      return null;
    } else {
      texts[texts.length - 1] += c;
    }
  }
  return texts;
}

function valuesOf(matcher: Matcher, label: string): string[] | null {
  return matcher.name !== label ? null : matcher.op === "=" ? [matcher.value] : matcher.op === "=~" ? alternatives(matcher.value) : null;
}

export function labelValues(selector: string, label: string): string[] {
  return (parseSelector(selector) ?? []).map((matcher) => valuesOf(matcher, label)).find((values) => values !== null) ?? [];
}

// The selector with these values of the label, or without a condition on it for none. A text that only the server can read
// stays as it is.
export function withLabelValues(selector: string, label: string, values: string[]): string {
  const matchers = parseSelector(selector);
  if (matchers === null) {
    return selector;
  }
  const others = matchers.filter((matcher) => valuesOf(matcher, label) === null);
  const matcher: Matcher =
    values.length === 1 ? { name: label, op: "=", value: values[0]! } : { name: label, op: "=~", value: values.map(escaped).join("|") };
  return formatSelector(values.length === 0 ? others : [...others, matcher]);
}
