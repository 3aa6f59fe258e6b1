// Names of rules and states, and texts of values.
import { directingTexts } from "../../app/directing-texts";
import { rulesOf, type Rule, type StoredPolicy } from "./policy";
import { formatCount, formatDuration } from "../../units";

export function ruleName({ kind, monitor }: Rule): string {
  const words = directingTexts.value;
  return words.policies.ruleName(words.kinds[kind] ?? kind, words.monitors[monitor] ?? monitor);
}

export function stateOf(policy: StoredPolicy): string {
  const words = directingTexts.value.policies;
  if (Number(policy.version ?? 0) === 0) {
    return words.unwritten;
  }
  return policy.isObserving ? words.observing : rulesOf(policy).length === 0 ? words.disarmed : words.armed;
}

export interface Cause {
  monitor?: string;
  uriRegex?: string;
  uriPath?: string;
  threshold?: number;
  current?: number;
}

/** Why a policy started a task: "CPU of a process: 97.5% ≥ 80%". */
export function causeText({ monitor = "", uriRegex, uriPath, threshold = 0, current = 0 }: Cause): string {
  const name = directingTexts.value.monitors[monitor] ?? monitor;
  const where = [name, uriPath ?? uriRegex].filter(Boolean).join(" ");
  return `${where}: ${monitorValue(monitor, current)} ≥ ${monitorValue(monitor, threshold)}`;
}

export function monitorValue(monitor: string, value: number): string {
  switch (monitor) {
    case "PROCESS_CPU":
    case "HTTP_ERROR_RATE":
      return `${Math.round(value * 10) / 10}%`;
    case "HTTP_AVG_RESPONSE_TIME":
      return formatDuration(value);
    default:
      return value < 100 ? String(Math.round(value * 10) / 10) : formatCount(value);
  }
}
