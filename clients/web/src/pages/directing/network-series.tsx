// The metrics of one connection over time, one metric at a time.
import { call } from "../../api/connect";
import type { Timeline } from "../../api/timeline";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { rangeKey, span } from "../../app/question";
import { lineColour } from "../../chart/line-plot";
import { lineName, TimelineChart } from "../../chart/timeline-chart";
import { change, param } from "../../url";
import { callName, type NetworkCall, type NetworkNode, type TrafficLine } from "./network-calls";
import { Failure } from "../notice";

const MINUTE_MS = 60_000;
// The metrics that are shown first, if the connection has them.
const FIRST = ["http1_client_duration_percentile", "http1_server_duration_percentile", "client_write_rtt_time_percentile", "client_write_cpm", "server_write_cpm"];

// Converts units of agents to those of the page: factor and unit.
const UNITS: Record<string, [number, string]> = {
  ns: [1, "nanoseconds"], us: [1e3, "nanoseconds"], ms: [1e6, "nanoseconds"],
  B: [1, "bytes"], "B/min": [1 / 60, "bytes/s"], "1/min": [1 / 60, "/s"],
};

function timelineOf(lines: TrafficLine[], startMs: number, endMs: number): Timeline {
  const first = Math.floor(startMs / MINUTE_MS) * MINUTE_MS;
  const n = Math.max(1, Math.ceil((endMs - first) / MINUTE_MS));
  const [factor, unit] = UNITS[lines[0]?.unit ?? ""] ?? [1, lines[0]?.unit ?? ""];
  return {
    unit,
    timesMs: Array.from({ length: n }, (_, i) => first + i * MINUTE_MS),
    lines: lines.map(({ detectPoint = "", code = "", percentile = 0, points = [] }) => {
      const values: (number | null)[] = new Array(n).fill(null);
      for (const { atMs, value = 0 } of points) {
        const i = Math.floor((Number(atMs) - first) / MINUTE_MS);
        if (i >= 0 && i < n) {
          values[i] = value * factor;
        }
      }
      const end = directingTexts.value.network.points[detectPoint] ?? detectPoint;
      return { labels: { percentile: percentile > 0 ? `p${percentile}` : "", code, end }, values, mean: 0 };
    }),
  };
}

interface Props {
  within: object;
  chosen: NetworkCall;
  nodes: NetworkNode[];
}

export function CallSeries({ within, chosen, nodes }: Props) {
  const words = directingTexts.value.network;
  const answer = useAnswer(`${rangeKey.value} ${chosen.callId}`, async (abort) => {
    const { lines = [] } = await call<{ lines?: TrafficLine[] }>("hearth.v1.NetworkService/NetworkSeries", { ...within, callId: chosen.callId }, abort);
    return { lines, ...span.peek() };
  });
  const byId = new Map(nodes.map((node) => [node.processId, node]));
  const lines = answer.value?.lines ?? [];
  const metrics = [...new Set(lines.map(({ metric = "" }) => metric))].sort();
  const metric = [param("metric"), ...FIRST].find((each) => metrics.includes(each)) ?? metrics[0];
  const timeline = answer.value && timelineOf(lines.filter((line) => line.metric === metric), answer.value.startMs, answer.value.endMs);
  return (
    <section aria-busy={answer.isLoading}>
      <div class="headline">
        <h2 class="named">{callName(chosen, byId)}</h2>
        {metrics.length > 0 && (
          <select class="code" aria-label={words.metric} value={metric} onChange={(event) => change({ metric: event.currentTarget.value })}>
            {metrics.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        )}
        <button type="button" onClick={() => change({ call: "", metric: "" })}>
          {words.all}
        </button>
      </div>
      <Failure error={answer.error} />
      {timeline && metric && (
        <>
          <div class="timeline-box">
            <TimelineChart
              key={metric}
              timeline={timeline}
              label={words.series}
              onRange={(from, to) => change({ from: String(from), to: String(to) })}
              onReset={() => history.back()}
            />
          </div>
          <ul class="lines">
            {timeline.lines.length > 1 &&
              timeline.lines.map(({ labels }, i) => (
                <li key={lineName(labels)}>
                  <i class="swatch" style={{ background: lineColour(i) }} /> {lineName(labels)}
                </li>
              ))}
          </ul>
        </>
      )}
    </section>
  );
}
