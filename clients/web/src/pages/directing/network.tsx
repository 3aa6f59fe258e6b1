// The network of one instance: who talks to whom, how much and how fast, and its sampled requests.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { PageLink } from "../../app/page-link";
import { rangeKey, span } from "../../app/question";
import { change, param } from "../../url";
import { CallSeries } from "./network-series";
import { Calls, trafficOf, type NetworkCall, type NetworkNode, type TrafficLine } from "./network-calls";
import { NetworkDrawing } from "./network-drawing";
import { OneRequest, Requests } from "./network-requests";
import { Failure, Notes } from "../notice";
import { ServiceField } from "./service-field";
import "./directing.css";

const SERVICE = "hearth.v1.NetworkService/";
// An answer has a point for each minute, metric and connection, too many for a table beyond this range.
const TRAFFIC_MS = 6 * 3_600_000;
const TRAFFIC = ["client_write", "client_read", "server_write", "server_read"].map((name) => name + "_total_bytes");

interface Topology {
  nodes?: NetworkNode[];
  calls?: NetworkCall[];
  notes?: string[];
}

export function Network() {
  return param("request") === "" ? <OneNetwork /> : <OneRequest key={param("request")} id={param("request")} />;
}

function ChooseInstance({ instances, instance }: { instances: string[]; instance: string }) {
  const words = directingTexts.value;
  const service = param("service");
  return (
    <span class="inline">
      <ServiceField
        key={service}
        defaultValue={service}
        aria-label={words.service}
        placeholder={words.service}
        onChange={(event) => change({ service: event.currentTarget.value.trim(), instance: "", call: "", metric: "" })}
      />
      {instances.length > 0 && (
        <select aria-label={words.instance} value={instance} onChange={(event) => change({ instance: event.currentTarget.value, call: "", metric: "" })}>
          {instances.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      )}
    </span>
  );
}

function OneNetwork() {
  const words = directingTexts.value.network;
  const service = param("service");
  const listed = useAnswer(service || null, (abort) =>
    call<{ instances?: { instance: string }[] }>("hearth.v1.ProcessService/ListInstances", { service }, abort),
  );
  const instances = service === "" ? [] : (listed.value?.instances ?? []).map((each) => each.instance);
  const instance = param("instance") || (instances[0] ?? "");

  const { startMs, endMs } = span.value;
  const within = { service, instance, startMs: String(Math.floor(startMs)), endMs: String(Math.floor(endMs)) };
  const key = instance === "" ? null : `${rangeKey.value} ${service} ${instance}`;
  const topology = useAnswer(key, (abort) => call<Topology>(SERVICE + "Topology", within, abort));
  const isShort = endMs - startMs <= TRAFFIC_MS;
  const traffic = useAnswer(isShort ? key : null, (abort) =>
    call<{ lines?: TrafficLine[] }>(SERVICE + "NetworkSeries", { ...within, metrics: TRAFFIC }, abort),
  );
  const { nodes = [], calls = [] } = (instance !== "" && topology.value) || {};
  const chosen = calls.find(({ callId }) => callId === param("call"));
  const bytes = trafficOf(isShort ? (traffic.value?.lines ?? []) : []);
  return (
    <section class="network" aria-busy={topology.isLoading}>
      <div class="headline">
        <h1>{instance === "" ? words.title : words.of(instance)}</h1>
        <ChooseInstance instances={param("instance") && !instances.includes(instance) ? [instance, ...instances] : instances} instance={instance} />
      </div>
      {calls.length === 0 && <p class="muted">{words.about}</p>}
      <Failure error={listed.error ?? topology.error ?? traffic.error} />
      {service === "" && <p>{words.choose}</p>}
      {service !== "" && listed.value && instance === "" && <p>{words.noInstances(service)}</p>}
      {instance !== "" && topology.value && calls.length === 0 && (
        <p>
          {words.empty}{" "}
          <PageLink page="tasks" to={{ new: "1", kind: "TASK_KIND_NETWORK", service, instances: instance }}>
            {words.startTask}
          </PageLink>
        </p>
      )}
      <Notes notes={(instance !== "" && topology.value?.notes) || []} />
      {calls.length > 0 && (
        <>
          <NetworkDrawing instance={instance} nodes={nodes} calls={calls} chosen={chosen} bytes={bytes} />
          {chosen && <CallSeries within={within} chosen={chosen} nodes={nodes} />}
          <Requests within={within} chosen={chosen} />
          <Calls nodes={nodes} calls={calls} chosen={chosen} bytes={bytes} hasTraffic={isShort} />
        </>
      )}
    </section>
  );
}
