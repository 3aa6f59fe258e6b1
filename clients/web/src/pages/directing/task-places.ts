// Where the results of a task are found on other pages.
import { formatSelector, type Matcher } from "../../selector";
import type { Page, Params } from "../../url";

export interface LinkedTask {
  kind: string;
  service?: string;
  instance?: string;
  process?: string;
  instances?: string[];
  startMs?: string;
  durationMs?: string;
}

// The last data of a task arrives a little after its end.
const LATE_MS = 60_000;

// Profile types of what agents send for a kind of task. For other kinds the page chooses among the types of the range.
const TYPES: Record<string, string> = {
  TASK_KIND_ON_CPU: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
  TASK_KIND_OFF_CPU: "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds",
};

export function selectorOf({ service = "", instance = "", process = "", instances = [] }: LinkedTask): string {
  const one = instance || (instances.length === 1 ? instances[0] : "");
  const matchers: Matcher[] = [{ name: "service_name", op: "=", value: service }];
  if (one !== "") {
    matchers.push({ name: "instance", op: "=", value: one });
  }
  if (process !== "") {
    matchers.push({ name: "process_name", op: "=", value: process });
  }
  return formatSelector(matchers);
}

export function rangeOf({ startMs = "0", durationMs = "0" }: LinkedTask): { from: string; to: string } {
  return { from: startMs, to: String(Number(startMs) + Number(durationMs) + LATE_MS) };
}

interface TaskLink {
  name: "profile" | "diff" | "network";
  page: Page;
  params: Params;
}

export function linksOf(task: LinkedTask): TaskLink[] {
  const range = rangeOf(task);
  if (task.kind === "TASK_KIND_NETWORK") {
    return [{ name: "network", page: "network", params: { service: task.service ?? "", instance: task.instance ?? "", ...range } }];
  }
  const question = { q: selectorOf(task), type: TYPES[task.kind] ?? "", ...range };
  return [
    { name: "profile", page: "profile", params: question },
    { name: "diff", page: "diff", params: { ...question, against: "hour" } },
  ];
}
