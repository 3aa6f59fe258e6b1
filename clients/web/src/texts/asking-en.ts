// Texts of the bar that asks, and of the page of a profile.
import type { TopKind } from "../api/encode";

export const askingEn = {
  table: {
    kind: "Rows of the table",
    kinds: {
      FUNCTION: "Function",
      LINE: "Line",
      FILE: "File",
      DIRECTORY: "Directory",
      CLASS: "Class",
      PACKAGE: "Package or library",
      MODULE: "Executable, library",
      THREAD: "Thread",
      FRAME_KIND: "Kind of code",
    } as Record<TopKind, string>,
    filter: "Filter rows (regular expression)",
    copy: "Copy as",
    unknown: "(unknown)",
    narrow: (name: string) => `Only samples with ${name}`,
    rows: (n: string) => `${n} rows`,
    part: (shown: string, all: string) => `${shown} of ${all} rows.`,
    more: (n: string) => `Load ${n} more`,
  },
  selector: {
    choices: { name: "Labels", operator: "Operators", value: "Values", end: "Labels" },
    operators: { "=": "is", "!=": "is not", "=~": "matches (regular expression)", "!~": "does not match" } as Record<string, string>,
    uploads: (n: string) => `${n} uploads`,
    keys: "Arrows choose, Tab takes, Enter applies the selector",
  },
  chips: {
    rows: (kind: string, names: string) => `${kind}: ${names}`,
  },
};

export type AskingTexts = typeof askingEn;
