// Results of trace tasks: slow requests with their spans, and the thread snapshots of one.
import { useMemo } from "preact/hooks";
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { PageLink } from "../../app/page-link";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { treeOfForest } from "../../flame/forest";
import { visibleName } from "../../flame/names";
import { formatDuration } from "../../units";
import { change, param } from "../../url";
import { AddressFlame } from "../address-flame";
import { NothingYet } from "../nothing-yet";
import { Failure, Notes } from "../notice";
import type { Task } from "./tasks";

const SERVICE = "hearth.v1.TaskService/";
const NS_PER_MS = 1e6;
const INDENT = 12;

interface Span {
  segmentId: string;
  spanId?: number;
  parentSpanId?: number;
  startMs?: string;
  endMs?: string;
  endpoint?: string;
  component?: string;
  isError?: boolean;
  isProfiled?: boolean;
}

interface Segment {
  traceId: string;
  instance?: string;
  endpoints?: string[];
  startMs?: string;
  durationMs?: string;
  spans?: Span[];
}

interface Snapshots {
  trees?: { elements?: { id?: number; parentId?: number; codeSignature?: string; durationMs?: string }[] }[];
  tip?: string;
}

const keyOf = (span: Span) => `${span.segmentId} ${span.spanId ?? 0}`;
const nameOf = (segment: Segment) => (segment.endpoints ?? []).map(visibleName).join(", ") || segment.traceId;

function depthsOf(spans: Span[]): Map<string, number> {
  const depths = new Map<string, number>();
  for (const span of spans) {
    const parent = depths.get(`${span.segmentId} ${span.parentSpanId ?? 0}`);
    depths.set(keyOf(span), (span.parentSpanId ?? -1) < 0 || parent === undefined ? 0 : parent + 1);
  }
  return depths;
}

function Spans({ segment, chosen }: { segment: Segment; chosen?: Span }) {
  const spans = segment.spans ?? [];
  const depths = depthsOf(spans);
  const first = Number(segment.startMs ?? 0);
  const whole = Math.max(1, Number(segment.durationMs ?? 0));
  return (
    <table class="spans">
      <tbody>
        {spans.map((span) => {
          const offset = (Number(span.startMs ?? 0) - first) / whole;
          const length = Number(span.endMs ?? 0) - Number(span.startMs ?? 0);
          const name = visibleName(span.endpoint ?? "");
          return (
            <tr key={keyOf(span)} aria-selected={span === chosen}>
              <th scope="row" class="named" style={{ paddingLeft: `${8 + INDENT * Math.min(depths.get(keyOf(span))!, INDENT)}px` }}>
                {span.isProfiled ? (
                  <button type="button" class="plain" aria-pressed={span === chosen} onClick={() => change({ span: span === chosen ? "" : keyOf(span), zoom: "" })}>
                    {name}
                  </button>
                ) : (
                  name
                )}{" "}
                <span class="muted">{span.component}</span>
              </th>
              <td>
                <svg class={span.isError ? "span-bar failed" : "span-bar"} viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect x={1000 * offset} width={Math.max(2, (1000 * length) / whole)} height="8" />
                </svg>
              </td>
              <td class="number">{formatDuration(length)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Stacks({ segment, chosen }: { segment: Segment; chosen?: Span }) {
  const words = directingTexts.value.tasks;
  const profiled = chosen ? [chosen] : (segment.spans ?? []).filter(({ isProfiled }) => isProfiled);
  const segments = [...new Set(profiled.map(({ segmentId }) => segmentId))];
  const queries = segments.map((segmentId) => ({
    segmentId,
    range: chosen && { startMs: chosen.startMs ?? "0", endMs: chosen.endMs ?? "0" },
  }));
  const answer = useAnswer(queries.length > 0 ? JSON.stringify(queries) : null, (abort) =>
    call<Snapshots>(SERVICE + "AnalyzeSegments", { queries }, abort),
  );
  const tree = useMemo(
    () =>
      treeOfForest(
        (answer.value?.trees ?? []).map(({ elements = [] }) =>
          elements.map(({ id = 0, parentId = 0, codeSignature = "", durationMs = "0" }) => ({
            id,
            parentId,
            name: codeSignature,
            total: Number(durationMs) * NS_PER_MS,
          })),
        ),
      ),
    [answer.value],
  );
  return (
    <>
      <div class="headline">
        <h2>{words.snapshotsOf(chosen ? visibleName(chosen.endpoint ?? "") : nameOf(segment))}</h2>
        {chosen && (
          <button type="button" onClick={() => change({ span: "", zoom: "" })}>
            {words.wholeRequest}
          </button>
        )}
      </div>
      <Failure error={answer.error} />
      <Notes notes={[answer.value?.tip ?? ""]} />
      {tree.total[0] > 0 && (
        <div class="views flame">
          <AddressFlame tree={tree} unit="nanoseconds" />
        </div>
      )}
    </>
  );
}

export function RequestsAnalysis({ task, round, isOpen }: { task: Task; round: number; isOpen: boolean }) {
  const words = directingTexts.value.tasks;
  const listed = useAnswer(`${task.taskId} ${isOpen ? round : ""}`, (abort) =>
    call<{ segments?: Segment[]; tip?: string }>(SERVICE + "ListSegments", { taskId: task.taskId }, abort),
  );
  const segments = listed.value?.segments ?? [];
  const idOf = (segment: Segment) => segment.spans?.[0]?.segmentId ?? segment.traceId;
  const segment = segments.find((each) => idOf(each) === param("segment")) ?? segments[0];
  const span = segment?.spans?.find((each) => keyOf(each) === param("span"));
  return (
    <>
      <Failure error={listed.error} />
      <Notes notes={[listed.value?.tip ?? ""]} />
      {listed.value && !segment && <NothingYet isOpen={isOpen} />}
      {segment && (
        <>
          <div class="headline">
            <h2>{words.requests}</h2>
            <select
              class="full"
              aria-label={words.requests}
              value={idOf(segment)}
              onChange={(event) => change({ segment: event.currentTarget.value, span: "", zoom: "" })}
            >
              {segments.map((each) => (
                <option key={idOf(each)} value={idOf(each)}>
                  {`${formatDuration(Number(each.durationMs ?? 0))}, ${nameOf(each)}, ${each.instance ?? ""}, ${formatTime(Number(each.startMs ?? 0))}`}
                </option>
              ))}
            </select>
            <PageLink page="traces" to={{ id: segment.traceId }}>
              {pageTexts.value.traces.trace}
            </PageLink>
          </div>
          <p class="muted">{words.chooseRequest}</p>
          <div class="rows">
            <Spans segment={segment} chosen={span} />
          </div>
          <Stacks segment={segment} chosen={span} />
        </>
      )}
    </>
  );
}
