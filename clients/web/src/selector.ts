// Label selectors as chips: {service_name="a", pod=~"b.*"} and its matchers. The server decides what is valid; a text that
// is no list of matchers stays a text.

export interface Matcher {
  name: string;
  op: "=" | "!=" | "=~" | "!~";
  value: string;
}

const MATCHER = /^\s*([a-zA-Z_][a-zA-Z0-9_.]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(,|$)/;

export function parseSelector(text: string): Matcher[] | null {
  const inner = /^\s*\{(.*)\}\s*$/s.exec(text);
  if (!inner) {
    return text.trim() === "" ? [] : null;
  }
  const matchers: Matcher[] = [];
  let rest = inner[1];
  while (rest.trim() !== "") {
    const found = MATCHER.exec(rest);
    if (!found) {
      return null;
    }
    matchers.push({
      name: found[1],
      op: found[2] as Matcher["op"],
      value: found[3].replace(/\\(n|.)/gs, (_, c: string) => (c === "n" ? "\n" : c)),
    });
    rest = rest.slice(found[0].length);
  }
  return matchers;
}

export function quote(value: string): string {
  return '"' + value.replace(/["\\]/g, "\\$&").replace(/\n/g, "\\n") + '"';
}

export function formatSelector(matchers: Matcher[]): string {
  return "{" + matchers.map((m) => m.name + m.op + quote(m.value)).join(", ") + "}";
}

// The selector without the matchers that `isDropped` names; one that is no list of matchers stays as it is.
export function withoutMatchers(text: string, isDropped: (matcher: Matcher) => boolean): string {
  const matchers = parseSelector(text);
  return matchers ? formatSelector(matchers.filter((matcher) => !isDropped(matcher))) : text;
}

// The selector with one more matcher, which takes the place of those of the same label and operator. It is added to the
// conditions of a text that is no list of matchers.
export function withMatcher(text: string, matcher: Matcher): string {
  const matchers = parseSelector(text);
  if (matchers) {
    return formatSelector([...matchers.filter((m) => m.name !== matcher.name || m.op !== matcher.op), matcher]);
  }
  const open = /\}\s*$/.test(text) ? text.replace(/\s*\}\s*$/, "") : text.trimEnd() + "{";
  const isFirst = /[{,]$/.test(open);
  const added = matcher.name + matcher.op + quote(matcher.value);
  return `${open}${isFirst ? (open.endsWith(",") ? " " : "") : ", "}${added}}`;
}

export function serviceOf(text: string): string {
  return parseSelector(text)?.find((m) => m.name === "service_name" && m.op === "=")?.value ?? "";
}
