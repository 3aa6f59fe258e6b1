// Texts of the bar that asks, and of the page of a profile.
import type { TopKind } from "../api/encode";
import type { Noise } from "../noise";

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
    hidden: (n: string) => `${n} of them are hidden.`,
  },
  range: {
    zone: (name: string) => `All times are in the zone of this browser, ${name}.`,
    linkHint: (range: string) => `The link shows the same at any time: it has the times that “${range}” means now.`,
    copied: "Copied",
  },
  selector: {
    choices: { name: "Labels", operator: "Operators", value: "Values", end: "Labels" },
    operators: { "=": "is", "!=": "is not", "=~": "matches (regular expression)", "!~": "does not match" } as Record<string, string>,
    uploads: (n: string) => `${n} uploads`,
    keys: "Arrows choose, Tab takes, Enter applies the selector",
  },
  timeline: {
    label:
      "Cost over time. Drag to choose a range; with Alt, to compare it with the time before. A double click goes back to the whole range. Keys: arrows move, Shift and arrows select, Enter applies, Alt+Enter compares, Escape goes back.",
    others: "others",
    only: (name: string) => `Only ${name}`,
    compare: "Compare a window",
    compareHint: "What you select next is compared with the time before it. Dragging with Alt does the same.",
    reset: "Whole range",
    resetHint: "Back to the range before the first selection. A double click does the same.",
    between: (range: string) => `No profile was received in this part, ${range}.`,
    gap: "no profile",
    markers: "Tasks",
    task: (name: string) => `Task: ${name}`,
    policy: (name: string) => `Started by a policy: ${name}`,
    trigger: (name: string, cause: string) => `Started by a policy: ${name} (${cause})`,
  },
  others: {
    frames: (n: string, share: string) => `${n} small frames, ${share} of what is shown, were summed by the server as “other”.`,
    sum: (share: string, places: string) => `${share} of what is shown are small frames that the server summed as “other”, in ${places} places.`,
    load: "Load them",
    loading: "They are being loaded",
  },
  cost: {
    explain: "Explain",
    hide: "Hide the plan",
    title: "Plan",
    run: "Run it",
    costly: (rows: string, bytes: string, time: string) => `This question reads ${rows} rows (${bytes}) and takes about ${time}.`,
    advice: "A shorter range, or a selector of whole services, costs less.",
    sum: (series: string, services: string, time: string) => `Series: ${series}. Services: ${services}. Time: about ${time}.`,
    source: "Read from",
    rows: "Rows",
    bytes: "As stored",
    time: "About",
    sources: {
      SOURCE_PROFILE: "single profiles",
      SOURCE_LATE: "late profiles",
      SOURCE_SEGMENT: "compacted hours",
      SOURCE_HOUR_TOTALS: "hours of totals",
      SOURCE_ROLL_10M: "blocks of 10 min",
      SOURCE_ROLL_1H: "blocks of 1 h",
      SOURCE_ROLL_1D: "blocks of 1 d",
    } as Record<string, string>,
  },
  noise: {
    hide: "Hide noise",
    hint: "Hidden frames vanish, and what they cost is counted as their callers’. No sample is left out.",
    hidden: (kind: string, share: string) => `hidden: ${kind}, ${share}`,
    kinds: {
      kernel: "kernel",
      libc: "libc and its like",
      gc: "garbage collector",
      go: "Go runtime",
      jvm: "Java runtime and JDK",
      python: "Python internals",
      node: "Node internals",
      dotnet: ".NET runtime",
      ruby: "Ruby internals",
    } as Record<Noise, string>,
  },
  sheet: {
    open: "Pages, selector and range",
    done: "Done",
    tools: "Tools",
  },
  chips: {
    rows: (kind: string, names: string) => `${kind}: ${names}`,
  },
};

export type AskingTexts = typeof askingEn;
