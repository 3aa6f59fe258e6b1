// What the selection costs over time, by group.
import type { Selection } from "../api/encode";
import { askTimeline, formatHeight } from "../api/timeline";
import { useAnswer } from "../api/use-answer";
import { rangeKey, span } from "../app/question";
import { texts, theme } from "../app/settings";
import { lineColour, lineName, TimelineChart } from "../chart/timeline-chart";
import { chooseStep } from "../time";
import { change, param } from "../url";
import { Failure } from "./notice";
import { keyOfSelection } from "./profile-state";

const CHART_POINTS = 240;
const MAX_LINES = 8;

export function Timeline({ selection }: { selection: Selection }) {
  const by = param("by");
  const timeline = useAnswer(`${rangeKey.value} ${keyOfSelection(selection)} ${by}`, (abort) =>
    askTimeline(
      {
        ...selection,
        span: span.value,
        stepS: chooseStep(span.value, CHART_POINTS),
        groupBy: by === "" ? [] : [by],
        limit: MAX_LINES,
      },
      abort,
    ),
  );
  const shown = timeline.value;
  return (
    <div class="timeline-box" aria-busy={timeline.isLoading}>
      <Failure error={timeline.error} />
      {shown && (
        <>
          <TimelineChart
            timeline={shown}
            theme={theme.value}
            label={texts.value.profile.timeline}
            onRange={(from, to) => change({ from: String(from), to: String(to) })}
            onReset={() => history.back()}
          />
          {by !== "" && (
            <ul class="lines">
              {shown.lines.map((line, i) => (
                <li key={lineName(line.labels)}>
                  <svg width="10" height="10" aria-hidden="true">
                    <rect width="10" height="10" fill={lineColour(i)} />
                  </svg>{" "}
                  {lineName(line.labels) || "—"} <span class="number">{formatHeight(line.mean, shown.unit)}</span>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </div>
  );
}
