// A task that is being written. It stands in the address, so that a link opens the form as somebody filled it in.
import { parseList, type Params } from "../../url";

export const TASK_KINDS = ["TASK_KIND_ON_CPU", "TASK_KIND_OFF_CPU", "TASK_KIND_NETWORK", "TASK_KIND_TRACE", "TASK_KIND_ASYNC_PROFILER", "TASK_KIND_PPROF"];
export const EVENTS: Record<string, string[]> = {
  TASK_KIND_ASYNC_PROFILER: ["cpu", "wall", "lock", "alloc", "ctimer", "itimer"],
  TASK_KIND_PPROF: ["cpu", "heap", "block", "mutex", "goroutine", "threadcreate", "allocs"],
};
// Events that agents take a snapshot of, without a duration, and events that have a rate.
const WITHOUT_DURATION = ["heap", "goroutine", "threadcreate", "allocs"];
const WITH_RATE = ["block", "mutex"];
const MINUTE_MS = 60_000;

export interface Draft {
  kind: string;
  service: string;
  instances: string[];
  event: string;
  endpoint: string;
  minutes: number;
  slowerThanMs: number;
  everyMs: number;
  samples: number;
  is4xx: boolean;
  is5xx: boolean;
  bodyBytes: number;
}

export function draftOf(params: Params): Draft {
  const number = (name: string, otherwise: number) => {
    const value = Number(params[name] ?? "");
    return params[name] !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : otherwise;
  };
  const kind = TASK_KINDS.find((each) => each === params.kind) ?? TASK_KINDS[0];
  return {
    kind,
    service: (params.service ?? "").trim(),
    instances: parseList(params.instances ?? ""),
    event: EVENTS[kind]?.find((each) => each === params.event) ?? "cpu",
    endpoint: (params.endpoint ?? "").trim(),
    minutes: number("minutes", 5),
    slowerThanMs: number("slower", 100),
    everyMs: number("every", 20),
    samples: number("samples", 5),
    is4xx: params.s4xx !== "0",
    is5xx: params.s5xx !== "0",
    bodyBytes: number("body", 0),
  };
}

export function hasRate({ kind, event }: Draft): boolean {
  return kind === "TASK_KIND_PPROF" && WITH_RATE.includes(event);
}

export function hasDuration({ kind, event }: Draft): boolean {
  return kind !== "TASK_KIND_NETWORK" && !(kind === "TASK_KIND_PPROF" && WITHOUT_DURATION.includes(event));
}

// The limit of captured bytes is the same for requests and responses. Without a limit nothing is captured.
function samplingRule({ slowerThanMs, is4xx, is5xx, bodyBytes }: Draft): object {
  const body = bodyBytes > 0 ? { maxRequestBytes: bodyBytes, maxResponseBytes: bodyBytes } : {};
  return {
    ...(slowerThanMs > 0 ? { minDurationMs: slowerThanMs } : {}),
    when4xx: is4xx,
    when5xx: is5xx,
    requireCompleteRequest: bodyBytes > 0,
    requireCompleteResponse: bodyBytes > 0,
    ...body,
  };
}

// CreateTaskRequest.
export function messageOf(draft: Draft): object {
  const base = { kind: draft.kind, service: draft.service };
  const durationMs = String(draft.minutes * MINUTE_MS);
  switch (draft.kind) {
    case "TASK_KIND_NETWORK":
      return { ...base, instance: draft.instances[0], samplingRules: [samplingRule(draft)] };
    case "TASK_KIND_TRACE": {
      const { endpoint, slowerThanMs: minDurationMs, everyMs: dumpPeriodMs, samples: maxSamples } = draft;
      return { ...base, endpoint, durationMs, minDurationMs, dumpPeriodMs, maxSamples };
    }
    case "TASK_KIND_ASYNC_PROFILER":
    case "TASK_KIND_PPROF":
      return {
        ...base,
        instances: draft.instances,
        events: [draft.event],
        durationMs: hasDuration(draft) ? durationMs : "0",
        dumpPeriodMs: hasRate(draft) ? draft.everyMs : undefined,
      };
    default:
      return { ...base, durationMs };
  }
}
