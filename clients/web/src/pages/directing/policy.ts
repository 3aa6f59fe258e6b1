// The policy of a service as a list of rules, and changes of single rules as they stand in the address. A change names
// its rule, so that saving it leaves every other rule as the server has it.

export interface Rule {
  kind: string;
  monitor: string;
  threshold: number;
  // At least `count` seconds of the last `period` must reach the threshold.
  period: number;
  count: number;
  paths: string[];
  regex: string;
}

// A removed rule has no period, which no rule of the server has.
export type Edit = Rule;

export interface StoredPolicy {
  service?: string;
  targets?: { kind: string; checkItems?: StoredItem[] }[];
  version?: string;
  modifiedMs?: string;
  modifiedBy?: string;
  isObserving?: boolean;
}

interface StoredItem {
  monitor: string;
  threshold?: string;
  periodSeconds?: number;
  count?: number;
  uriPaths?: string[];
  uriRegex?: string;
}

export const KINDS = ["ON_CPU", "OFF_CPU", "NETWORK"];
export const MONITORS = ["PROCESS_CPU", "PROCESS_THREAD_COUNT", "SYSTEM_LOAD", "HTTP_ERROR_RATE", "HTTP_AVG_RESPONSE_TIME"];
const KIND_PREFIX = "TASK_KIND_";
const MONITOR_PREFIX = "MONITOR_KIND_";

// Thresholds of new rules. A service in trouble reaches them, and a healthy one does not.
const FIRST_THRESHOLD: Record<string, number> = {
  PROCESS_CPU: 80, PROCESS_THREAD_COUNT: 500, SYSTEM_LOAD: 8, HTTP_ERROR_RATE: 5, HTTP_AVG_RESPONSE_TIME: 500,
};
// Percentages end at 100, even if a process with several threads can use more of them.
const PERCENTAGES = ["PROCESS_CPU", "HTTP_ERROR_RATE"];
const FIRST_PERIOD = 10;
const FIRST_COUNT = 3;

export function largestThreshold(monitor: string): number {
  return PERCENTAGES.includes(monitor) ? 100 : Number.MAX_SAFE_INTEGER;
}

export function isHttp(monitor: string): boolean {
  return monitor.startsWith("HTTP_");
}

export function ruleKey(rule: { kind: string; monitor: string }): string {
  return `${rule.kind} ${rule.monitor}`;
}

export function firstRule(kind: string, monitor: string): Rule {
  return { kind, monitor, threshold: FIRST_THRESHOLD[monitor] ?? 1, period: FIRST_PERIOD, count: FIRST_COUNT, paths: [], regex: "" };
}

export function removal(rule: Rule): Edit {
  return { ...rule, threshold: 0, period: 0, count: 0, paths: [], regex: "" };
}

export function rulesOf(policy: StoredPolicy = {}): Rule[] {
  return (policy.targets ?? []).flatMap(({ kind, checkItems = [] }) =>
    checkItems.map((item) => ({
      kind: kind.replace(KIND_PREFIX, ""),
      monitor: item.monitor.replace(MONITOR_PREFIX, ""),
      threshold: Number(item.threshold ?? 0),
      period: item.periodSeconds ?? 0,
      count: item.count ?? 0,
      paths: item.uriPaths ?? [],
      regex: item.uriRegex ?? "",
    })),
  );
}

function place(rule: Rule): number {
  return KINDS.indexOf(rule.kind) * MONITORS.length + MONITORS.indexOf(rule.monitor);
}

export function applyEdits(rules: Rule[], edits: Edit[]): Rule[] {
  const byKey = new Map(rules.map((rule) => [ruleKey(rule), rule]));
  for (const edit of edits) {
    if (edit.period === 0 && edit.count === 0) {
      byKey.delete(ruleKey(edit));
    } else {
      byKey.set(ruleKey(edit), edit);
    }
  }
  return [...byKey.values()].sort((a, b) => place(a) - place(b));
}

// Returns the edits that change `from` into `to`.
export function editsBetween(from: Rule[], to: Rule[]): Edit[] {
  const before = new Map(from.map((rule) => [ruleKey(rule), formatEdit(rule)]));
  const after = new Set(to.map(ruleKey));
  const changed = to.filter((rule) => before.get(ruleKey(rule)) !== formatEdit(rule));
  return [...changed, ...from.filter((rule) => !after.has(ruleKey(rule))).map(removal)];
}

// The targets as the server takes them. A target that has no rules, which the server may store, is kept.
export function targetsOf(rules: Rule[], policy: StoredPolicy = {}): object[] {
  const empty = (policy.targets ?? []).filter((target) => (target.checkItems ?? []).length === 0).map(({ kind }) => kind);
  return KINDS.flatMap((kind) => {
    const items = rules.filter((rule) => rule.kind === kind);
    if (items.length === 0 && !empty.includes(KIND_PREFIX + kind)) {
      return [];
    }
    const checkItems = items.map((rule) => ({
      monitor: MONITOR_PREFIX + rule.monitor,
      threshold: String(rule.threshold),
      periodSeconds: rule.period,
      count: rule.count,
      uriPaths: rule.paths,
      uriRegex: rule.regex,
    }));
    return [{ kind: KIND_PREFIX + kind, checkItems }];
  });
}

// ---- edits in the address: "ON_CPU HTTP_ERROR_RATE 5 10 3 /buy /pay", "~" before a regular expression ----

export function formatEdit(edit: Edit): string {
  const uris = [...edit.paths, ...(edit.regex === "" ? [] : ["~" + edit.regex])].map(encodeURIComponent);
  return [edit.kind, edit.monitor, edit.threshold, edit.period, edit.count, ...uris].join(" ");
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function parseEdit(text: string): Edit | null {
  const [kind, monitor, ...rest] = text.split(" ");
  const [threshold, period, count] = rest.slice(0, 3).map(Number);
  const isRule = KINDS.includes(kind) && MONITORS.includes(monitor) && [threshold, period, count].every(Number.isSafeInteger);
  if (!isRule) {
    return null;
  }
  const uris = rest.slice(3).map(decode).filter((uri) => uri !== "");
  const regex = uris.find((uri) => uri.startsWith("~"))?.slice(1) ?? "";
  return { kind, monitor, threshold, period, count, paths: uris.filter((uri) => !uri.startsWith("~")), regex };
}

// ---- errors of the server at the field that they are about ----

export type Field = "threshold" | "period" | "count" | "uris";

// "check PROCESS_CPU in ON_CPU error: count must be ..."; null where the error is about no single rule.
export function placeOfError(message: string): { key: string; field: Field; text: string } | null {
  const found = /check (\w+) in (\w+) error: (.*)$/s.exec(message);
  if (!found) {
    return null;
  }
  const [, monitor, kind, text] = found;
  const field = /^(a )?period\b/.test(text) ? "period" : /^count\b/.test(text) ? "count" : /\bURIs?\b/.test(text) ? "uris" : "threshold";
  return { key: ruleKey({ kind, monitor }), field, text };
}
