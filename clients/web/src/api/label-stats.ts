// Profiles and totals by the values of a label.
import { call } from "./connect";
import { selectionJson, type Selection } from "./encode";

interface LabelValue {
  value: string;
  profiles: number;
  total: number;
}

export interface LabelStats {
  values: LabelValue[];
  // Also of those beyond the limit.
  valueCount: number;
  unit: string;
}

interface Answered {
  values?: { value?: string; count?: string; sum?: string }[];
  valueCount?: string;
  unit?: string;
}

// Conditions on stack traces are not part of the question: the server counts whole profiles.
export async function askLabelStats(selection: Selection, label: string, limit: number, abort: AbortSignal): Promise<LabelStats> {
  const whole = { ...selection, functions: [], without: [], rows: [], callSite: [] };
  const message = { selection: selectionJson(whole), label, limit: String(limit) };
  const answer = await call<Answered>("hearth.v1.QueryService/LabelStats", message, abort);
  return {
    values: (answer.values ?? []).map(({ value = "", count, sum }) => ({ value, profiles: Number(count ?? 0), total: Number(sum ?? 0) })),
    valueCount: Number(answer.valueCount ?? 0),
    unit: answer.unit ?? "",
  };
}
