// The connections of an instance as a table, the largest first. It holds all that the drawing shows.
import { directingTexts } from "../../app/directing-texts";
import { visibleName } from "../../flame/names";
import { formatValue } from "../../units";
import { change } from "../../url";
import { Rows } from "../rows";

export interface NetworkNode {
  processId: string;
  name?: string;
  service?: string;
  instance?: string;
  detectType?: string;
  addresses?: string[];
}

export interface NetworkCall {
  callId: string;
  sourceId: string;
  destinationId: string;
  sourceComponents?: string[];
  destinationComponents?: string[];
  detectPoints?: string[];
}

export interface TrafficLine {
  callId?: string;
  metric?: string;
  detectPoint?: string;
  unit?: string;
  code?: string;
  percentile?: number;
  points?: { atMs?: string; value?: number }[];
}

export interface Traffic {
  written: number;
  read: number;
}

// Returns the bytes of a mean minute by connection. If both ends were watched, the client's count is taken.
export function trafficOf(lines: TrafficLine[]): Map<string, Traffic> {
  const found = new Map<string, Traffic>();
  const isFromClient = new Set(lines.filter(({ detectPoint }) => detectPoint === "CLIENT").map(({ callId }) => callId));
  for (const { callId = "", metric = "", detectPoint, points = [] } of lines) {
    if (points.length > 0 && (detectPoint === "CLIENT" || !isFromClient.has(callId))) {
      const mean = points.reduce((sum, { value = 0 }) => sum + value, 0) / points.length;
      const traffic = found.get(callId) ?? { written: 0, read: 0 };
      traffic[metric.includes("_write_") ? "written" : "read"] += mean;
      found.set(callId, traffic);
    }
  }
  return found;
}

export function totalOf(traffic?: Traffic): number {
  return traffic ? traffic.written + traffic.read : 0;
}

export function nameOf(node?: NetworkNode): string {
  return node?.name || node?.addresses?.[0] || node?.processId || "";
}

// Both ends may report the same protocol, which is named once.
export function componentsOf(call: NetworkCall): string {
  return [...new Set([...(call.sourceComponents ?? []), ...(call.destinationComponents ?? [])])].join(", ");
}

export function callName(call: NetworkCall, nodes: Map<string, NetworkNode>): string {
  const name = (id: string) => visibleName(nameOf(nodes.get(id)));
  return `${name(call.sourceId)} → ${name(call.destinationId)}`;
}

function End({ node }: { node?: NetworkNode }) {
  const name = visibleName(nameOf(node));
  const addresses = (node?.addresses ?? []).join(", ");
  return (
    <span class="code" title={[name, addresses].filter(Boolean).join(" ")}>
      {name}
    </span>
  );
}

interface Props {
  nodes: NetworkNode[];
  calls: NetworkCall[];
  chosen?: NetworkCall;
  bytes: Map<string, Traffic>;
  hasTraffic: boolean;
}

export function Calls({ nodes, calls, chosen, bytes, hasTraffic }: Props) {
  const words = directingTexts.value.network;
  const byId = new Map(nodes.map((node) => [node.processId, node]));
  const rows = [...calls].sort((a, b) => totalOf(bytes.get(b.callId)) - totalOf(bytes.get(a.callId)) || (a.callId < b.callId ? -1 : 1));
  const amount = (value?: number) => value !== undefined && formatValue(value, "bytes") + "/min";
  return (
    <section>
      <h2>{words.connections}</h2>
      <Rows heads={[words.from, words.to, words.component, words.seenAt, { number: words.written }, { number: words.read }]}>
        {rows.map((call) => (
          <tr key={call.callId} aria-selected={call === chosen}>
            <td class="named">
              <End node={byId.get(call.sourceId)} />
            </td>
            <th scope="row" class="named">
              <button
                type="button"
                class="plain"
                aria-pressed={call === chosen}
                aria-label={callName(call, byId)}
                onClick={() => change({ call: call === chosen ? "" : call.callId, metric: "" })}
              >
                <End node={byId.get(call.destinationId)} />
              </button>
            </th>
            <td>{componentsOf(call)}</td>
            <td>{(call.detectPoints ?? []).map((point) => words.points[point] ?? point).join(", ")}</td>
            <td class="number">{amount(bytes.get(call.callId)?.written)}</td>
            <td class="number">{amount(bytes.get(call.callId)?.read)}</td>
          </tr>
        ))}
      </Rows>
      <p class="muted">{hasTraffic ? words.perMinute : words.noTraffic}</p>
    </section>
  );
}
