// Both ranges of a comparison on one chart, so that it is seen what was chosen; a drag chooses another comparison.
import { askTimeline, CHART_POINTS } from "../../api/timeline";
import { useAnswer } from "../../api/use-answer";
import { askingTexts } from "../../app/asking-texts";
import { span } from "../../app/question";
import { texts } from "../../app/settings";
import { TimelineChart } from "../../chart/timeline-chart";
import { chooseStep, type Span } from "../../time";
import { change } from "../../url";
import { Failure } from "../notice";

interface Props {
  type: string;
  selector: string;
  baseline: Span;
  comparison: Span;
  // What the two ranges depend on, whose times move while their names stay.
  of: string;
}

export function DiffTimeline({ type, selector, baseline, comparison, of }: Props) {
  const whole = {
    startMs: Math.min(baseline.startMs, comparison.startMs, span.value.startMs),
    endMs: Math.max(baseline.endMs, comparison.endMs, span.value.endMs),
  };
  const timeline = useAnswer(of, (abort) =>
    askTimeline({ type, selector, span: whole, stepS: chooseStep(whole, CHART_POINTS), groupBy: [], limit: 0 }, abort),
  );
  const words = texts.value.diff;
  const band = (kind: "baseline" | "comparison", { startMs, endMs }: Span) => ({ kind, fromMs: startMs, toMs: endMs, name: words[kind] });
  const isOne = baseline.startMs === comparison.startMs && baseline.endMs === comparison.endMs;
  return (
    <div class="timeline-box" aria-busy={timeline.isLoading}>
      <Failure error={timeline.error} />
      {timeline.value && (
        <TimelineChart
          timeline={timeline.value}
          label={askingTexts.value.timeline.diffLabel}
          bands={isOne ? [] : [band("baseline", baseline), band("comparison", comparison)]}
          onRange={(from, to) => change({ from: String(from), to: String(to), zoom: "" })}
        />
      )}
    </div>
  );
}
