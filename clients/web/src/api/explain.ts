// What a question would read, counted by the server without reading it.
import { call } from "./connect";
import { stacksJson, type Selection } from "./encode";

export interface Source {
  source: string;
  rows: number;
  bytes: number;
  milliseconds: number;
}

export interface Plan {
  services: number;
  series: number;
  rows: number;
  bytes: number;
  milliseconds: number;
  sources: Source[];
  notes: string[];
}

interface Counted {
  rows?: string;
  bytes?: string;
  milliseconds?: number;
}

interface Answered extends Counted {
  services?: string;
  series?: string;
  totals?: (Counted & { source?: string })[];
  notes?: string[];
}

function counted({ rows, bytes, milliseconds }: Counted): { rows: number; bytes: number; milliseconds: number } {
  return { rows: Number(rows ?? 0), bytes: Number(bytes ?? 0), milliseconds: milliseconds ?? 0 };
}

export async function askPlan(selection: Selection, abort: AbortSignal): Promise<Plan> {
  const answer = await call<Answered>(
    "hearth.v1.QueryService/Explain",
    {
      profileType: selection.type,
      labelSelector: selection.selector,
      start: String(Math.floor(selection.startMs)),
      end: String(Math.floor(selection.endMs)),
      kind: "QUESTION_KIND_MERGE",
      stacks: stacksJson(selection),
    },
    abort,
  );
  return {
    ...counted(answer),
    services: Number(answer.services ?? 0),
    series: Number(answer.series ?? 0),
    sources: (answer.totals ?? []).map((total) => ({ ...counted(total), source: total.source ?? "" })),
    notes: answer.notes ?? [],
  };
}
