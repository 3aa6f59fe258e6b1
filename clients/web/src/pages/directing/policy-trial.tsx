// The dry run of a policy: how often one of its rules would have started profiling, and the metric that decides it.
import { useMemo } from "preact/hooks";
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { useLatest } from "../../api/use-latest";
import { directingTexts } from "../../app/directing-texts";
import { formatTime, rangeKey, rangeName, span } from "../../app/question";
import { Said } from "../../app/said";
import { COLOURED, ThresholdChart } from "../../chart/threshold-chart";
import { lineColour } from "../../chart/line-plot";
import { maximaOf, type Maxima, type MonitorLine, type MonitorValues } from "./monitor-lines";
import { isHttp, largestThreshold, MONITORS, type Rule } from "./policy";
import { chooseStep } from "../../time";
import { formatCount, formatDuration } from "../../units";
import { Failure } from "../notice";
import { causeText, monitorValue, ruleName, type Cause } from "./policy-words";
import type { Task } from "./tasks";

interface Trigger {
  kind: string;
  instance?: string;
  process?: string;
  atMs?: string;
  cause?: Cause;
}

// Agents report each five seconds, and a value takes some forty bytes in an answer.
const REPORT_MS = 5000;
const MOST_VALUES = 150_000;
const STEPS = 400;

const times = () => ({ startMs: String(Math.floor(span.value.startMs)), endMs: String(Math.floor(span.value.endMs)) });

// Asks for the peaks of steps first, which say how many lines there are, and then for every value if a page can hold them
// all, otherwise for the lowest of each step.
async function askSeries(service: string, monitor: string, abort: AbortSignal): Promise<MonitorValues> {
  const { startMs, endMs } = span.value;
  const ask = async (stepSeconds: number, stepValue: string) => {
    const message = { service, monitor: "MONITOR_KIND_" + monitor, stepSeconds, stepValue: "MONITOR_STEP_VALUE_" + stepValue, ...times() };
    return (await call<{ lines?: MonitorLine[] }>("hearth.v1.PolicyService/MonitorSeries", message, abort)).lines ?? [];
  };
  const step = chooseStep(span.value, STEPS);
  const peaks = await ask(step, "HIGHEST");
  const isMuch = peaks.length * ((endMs - startMs) / REPORT_MS) > MOST_VALUES;
  return isMuch ? { lines: peaks, lows: await ask(step, "LOWEST"), stepMs: step * 1000 } : { lines: await ask(0, "MEAN"), stepMs: 0 };
}

// HTTP rules watch their own URIs only.
function isWatched(line: MonitorLine, rule: Rule): boolean {
  const wanted = rule.paths.length > 0 ? rule.paths : [rule.regex || "global"];
  return !isHttp(rule.monitor) || wanted.includes(line.uri ?? "");
}

function Legend({ maxima }: { maxima: Maxima }) {
  return (
    <ul class="lines">
      {maxima.lines.slice(0, COLOURED).map(({ name }, i) => (
        <li key={name}>
          <i class="swatch" style={{ background: lineColour(i) }} /> <span class="named">{name}</span>
        </li>
      ))}
      <li>
        <i class="mark-fired" /> {directingTexts.value.policies.markFired}
      </li>
      <li>
        <i class="mark-started" /> {directingTexts.value.policies.markStarted}
      </li>
      {maxima.lines.length > COLOURED && <li class="muted">{directingTexts.value.policies.moreLines(formatCount(maxima.lines.length - COLOURED))}</li>}
    </ul>
  );
}

function Fired({ triggers }: { triggers: Trigger[] }) {
  return (
    <details>
      <summary>{directingTexts.value.policies.firedList}</summary>
      <ul class="plain-list">
        {triggers.map((trigger, i) => (
          <li key={i}>
            {formatTime(Number(trigger.atMs ?? 0))}{" "}
            <span class="code">{[trigger.process, trigger.instance && `(${trigger.instance})`].filter(Boolean).join(" ")}</span>{" "}
            <span class="muted">{trigger.cause && causeText(trigger.cause)}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

interface Props {
  service: string;
  rule: Rule;
  targets: object[];
  // Tasks that policies of the service started in the range.
  started: Task[];
  onHold(rule: Rule): void;
  onRule(rule: Rule): void;
}

export function PolicyTrial({ service, rule, targets, started, onHold, onRule }: Props) {
  const words = directingTexts.value;
  const range = span.value;
  const series = useAnswer(`${rangeKey.value} ${service} ${rule.monitor}`, (abort) => askSeries(service, rule.monitor, abort));
  const run = useLatest(`${rangeKey.value} ${JSON.stringify(targets)}`, (abort) =>
    call<{ triggers?: Trigger[]; notes?: string[] }>("hearth.v1.PolicyService/DryRun", { policy: { service, targets }, ...times() }, abort),
  );
  const maxima = useMemo(
    () => maximaOf({ lows: series.value?.lows, stepMs: series.value?.stepMs ?? 0, lines: (series.value?.lines ?? []).filter((line) => isWatched(line, rule)) }, span.peek()),
    [series.value, rule.paths.join(" "), rule.regex],
  );
  const ofKind = (run.value?.triggers ?? []).filter(({ kind }) => kind === "TASK_KIND_" + rule.kind);
  const fired = ofKind.filter(({ cause }) => cause?.monitor === rule.monitor);
  const isOfOther = (note: string) =>
    MONITORS.some((each) => each !== rule.monitor && note.includes(each)) || (note.startsWith("HTTP") && !isHttp(rule.monitor));
  const notes = (run.error ? [] : (run.value?.notes ?? [])).filter((note) => !isOfOther(note));
  const monitor = words.monitors[rule.monitor];
  return (
    <section class="trial">
      <div class="headline">
        <h2>{words.policies.trial(ruleName(rule), rangeName())}</h2>
        {run.value && !run.error && (
          <span class="figure" role="status">
            {words.policies.fired(formatCount(fired.length))}
          </span>
        )}
      </div>
      <Failure error={series.error} />
      {ofKind.length > fired.length && (
        <p class="muted">{words.policies.firedAll(formatCount(ofKind.length), words.kinds[rule.kind])}</p>
      )}
      {series.value && series.value.stepMs > 0 && <p class="muted">{words.policies.steps(formatDuration(series.value.stepMs))}</p>}
      {series.value && maxima.lines.length === 0 ? (
        <p class="muted">{words.policies.noMetrics(monitor)}</p>
      ) : (
        <ThresholdChart
          maxima={maxima}
          span={range}
          threshold={rule.threshold}
          largest={largestThreshold(rule.monitor)}
          startedMs={started.filter(({ kind }) => kind === "TASK_KIND_" + rule.kind).map(({ startMs }) => Number(startMs ?? 0))}
          firedMs={fired.map(({ atMs }) => Number(atMs ?? 0))}
          label={words.policies.thresholdOf(monitor)}
          valueText={(value) => monitorValue(rule.monitor, value)}
          onMove={(threshold) => onHold({ ...rule, threshold })}
          onDone={(threshold) => onRule({ ...rule, threshold })}
        />
      )}
      {maxima.lines.length > 0 && <Legend maxima={maxima} />}
      {fired.length > 0 && <Fired triggers={fired} />}
      {notes.map((note) => (
        <p class="muted said" key={note}>
          <Said text={note} />
        </p>
      ))}
    </section>
  );
}
