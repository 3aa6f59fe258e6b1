// Names of functions come from anybody's program: they are text to show, and nothing else.

// Controls, zero-width characters, marks that reorder text, line separators, the byte order mark, tags, lone surrogates, and
// what XML does not allow.
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

function written(c: string): string {
  return `\\u{${c.codePointAt(0)!.toString(16)}}`;
}

/** The name with every character that is not seen, or that changes how others are seen, written as \u{hex}. */
export function visibleName(name: string): string {
  return name.replace(INVISIBLE, written);
}

/** The same for text of several lines: line feeds and tabs stay. */
export function visibleText(text: string): string {
  return text.replace(INVISIBLE, (c) => (c === "\n" || c === "\t" ? c : written(c)));
}

/** The visible name in at most `limit` characters, for places where a name of ten kilobytes would push all else away. */
export function boundedName(name: string, limit: number): string {
  // Cut before escaping too: an escape is longer than what it stands for, never shorter.
  const text = visibleName(name.length > limit ? name.slice(0, limit + 1) : name);
  return text.length > limit ? text.slice(0, limit - 1) + "…" : text;
}

/** 32 bits, spread well: equal on every machine and in every version, because URLs and colours depend on it. */
export function hashText(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  }
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** What stands for a frame in URLs, below its parent. */
export function frameId(name: string): string {
  return hashText(name).toString(36);
}

export const UNKNOWN = "[unknown]";

/** What compilers append to the names of functions that they split or copied. */
const COPIES = /(\.(isra|part|constprop|cold|lto_priv|llvm|clone)(\.\d+)*)+$/;

/** The name without type arguments and parameters, which hold dots and colons of their own. */
function bareName(name: string): string {
  if (!/[<([]/.test(name)) {
    return name.slice(0, 1000);
  }
  let depth = 0;
  let bare = "";
  for (const c of name.slice(0, 1000)) {
    if (c === "<" || c === "[") depth++;
    else if ((c === ">" || c === "]") && depth > 0) depth--;
    else if (depth === 0) bare += c;
  }
  const parameters = bare.indexOf("(", 1);
  // Go's receivers "pkg.(*T).Method" are not parameters.
  return parameters > 0 && bare[parameters - 1] !== "." ? bare.slice(0, parameters) : bare;
}

function hasCapitalAt(text: string, at: number): boolean {
  return text.charCodeAt(at) >= 65 && text.charCodeAt(at) <= 90;
}

/** The package, module or library that a function's name tells; "" where the name has none, as in C. */
export function packageOf(name: string): string {
  if (name === "" || name === UNKNOWN) {
    return UNKNOWN;
  }
  if (name.startsWith("[")) {
    return name.slice(0, name.indexOf("]") + 1) || name;
  }
  const offset = name.lastIndexOf("+0x");
  if (offset > 0) {
    return name.slice(0, offset);
  }

  const bare = bareName(name).replace(COPIES, "");
  const colons = bare.indexOf("::");
  if (colons > 0) {
    const head = bare.slice(0, colons);
    return head.slice(head.lastIndexOf(" ") + 1);
  }
  const slash = bare.lastIndexOf("/");
  const last = bare.slice(slash + 1);
  const dot = last.indexOf(".");
  if (slash >= 0) {
    // "java/util/HashMap.put" has the class after the slash, "net/http.(*Server).Serve" the package.
    return hasCapitalAt(last, 0) || dot < 0 ? bare.slice(0, slash) : bare.slice(0, slash + 1 + dot);
  }
  if (dot <= 0) {
    return "";
  }
  // All before a class, as Java and C# name them. A picture of thousands of names waits for this: no list of the parts.
  for (let at = dot + 1; at > 0 && !hasCapitalAt(last, 0); at = last.indexOf(".", at) + 1) {
    if (hasCapitalAt(last, at)) {
      return last.slice(0, at - 1);
    }
  }
  return last.slice(0, dot);
}

const packages = new WeakMap<readonly string[], string[]>();

/** packageOf() of every name, found once for all that show the same names. */
export function packagesOf(names: readonly string[]): readonly string[] {
  const known = packages.get(names) ?? names.map(packageOf);
  packages.set(names, known);
  return known;
}

/** Code that the person who looks did not write and can seldom change: it steps back in the picture. */
export function isBackground(packageName: string): boolean {
  return /^(\[.*\]|runtime|runtime\/.*|internal\/runtime\/.*|syscall|vmlinux|kernel|libc(\.so.*|-.*)?|ld-linux.*|libpthread.*|java[./]lang|jdk[./]internal.*|gc)$/.test(
    packageName,
  );
}

export type FrameKind = "go" | "java" | "script" | "native" | "kernel" | "unknown";

/** The kind of frame as far as the name tells it. */
export function kindOf(name: string): FrameKind {
  if (name === "" || name === UNKNOWN) return "unknown";
  if (name.startsWith("[k") || name.endsWith("_[k]") || name.startsWith("vmlinux+")) return "kernel";
  if (/\.(py|js|ts|mjs|cjs|rb|php)\b/.test(name)) return "script";
  if (name.includes("::") || name.includes("+0x")) return "native";
  if (/^[\w$]+([./][\w$]+)*[./][A-Z][\w$]*\./.test(name)) return "java";
  if (name.replace(COPIES, "").includes(".")) return "go";
  return "native";
}

/** Where the part of a name begins that must stay when it is cut from the left: the method, with its receiver. */
export function shortName(name: string): string {
  const bare = name.indexOf("(") > 0 && name[name.indexOf("(") - 1] !== "." ? name.slice(0, name.indexOf("(")) : name;
  const at = Math.max(bare.lastIndexOf("/") + 1, bare.lastIndexOf("::") + 1 ? bare.lastIndexOf("::") + 2 : 0);
  return name.slice(at);
}
