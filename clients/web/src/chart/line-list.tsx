// The legend of a chart over time: colour, name and mean of each line.
import { formatHeight, type Timeline } from "../api/timeline";
import { lineColour } from "./line-plot";
import { lineName } from "./timeline-chart";

export function LineList({ timeline }: { timeline: Timeline }) {
  return (
    <ul class="lines">
      {timeline.lines.map((line, i) => (
        <li key={lineName(line.labels)}>
          <svg width="10" height="10" aria-hidden="true">
            <rect width="10" height="10" fill={lineColour(i)} />
          </svg>{" "}
          {lineName(line.labels) || "—"} <span class="number">{formatHeight(line.mean, timeline.unit)}</span>
        </li>
      ))}
    </ul>
  );
}
