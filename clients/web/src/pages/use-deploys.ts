// The new versions of what the address asks for, as the chart of a profile marks them and the form of a diff offers them.
import { deploysOf, versionLabel, type Deploy } from "../api/deploys";
import type { Selection } from "../api/encode";
import { askTimeline, CHART_POINTS } from "../api/timeline";
import { useAnswer } from "../api/use-answer";
import { useLabelNames } from "../app/query-bar";
import { chooseStep } from "../time";

const MAX_VERSIONS = 20;

interface Deploys {
  label: string;
  deploys: Deploy[];
}

// key: what the selection depends on; null asks nothing.
export function useDeploys(selection: Selection, key: string | null): Deploys {
  const label = versionLabel(useLabelNames());
  const answer = useAnswer(label && key !== null ? `${key} ${label}` : null, async (abort) => {
    const asked = { ...selection, span: selection, stepS: chooseStep(selection, CHART_POINTS), groupBy: [label!], limit: MAX_VERSIONS };
    // The server notes that it left versions out, which no chart shows; a signal of its own drops the note.
    return { label: label!, deploys: deploysOf(await askTimeline(asked, AbortSignal.any([abort])), label!) };
  });
  return answer.value ?? { label: "", deploys: [] };
}
