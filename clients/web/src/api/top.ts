// The exact tables of functions, lines, files, classes, ...: from all samples, never from a flame graph that was cut.
import { call } from "./connect";
import { selectionJson, type Selection, type TopKind } from "./encode";

export type TopSort = "self" | "total" | "name";

export interface TopRow {
  // As the server names the row in conditions; "" is everything unknown.
  name: string;
  self: number;
  total: number;
  file: string;
  line: number;
  module: string;
}

export interface Top {
  rows: TopRow[];
  // Of all rows that match, also of those beyond the limit.
  rowCount: number;
  total: number;
  unit: string;
}

interface TopQuestion {
  selection: Selection;
  kind: TopKind;
  search: string;
  sort: TopSort;
  isReverse: boolean;
  limit: number;
}

interface Answered {
  rows?: { name?: string; self?: string; total?: string; file?: string; line?: string; module?: string }[];
  rowCount?: string;
  total?: string;
  unit?: string;
}

export async function askTop(question: TopQuestion, abort: AbortSignal): Promise<Top> {
  const { selection, kind, search, sort, isReverse, limit } = question;
  const answer = await call<Answered>(
    "hearth.v1.QueryService/Top",
    {
      selection: selectionJson(selection),
      kind: "TOP_KIND_" + kind,
      search,
      sort: "TOP_SORT_" + sort.toUpperCase(),
      reverse: isReverse,
      limit: String(limit),
    },
    abort,
  );
  return {
    rows: (answer.rows ?? []).map((row) => ({
      name: row.name ?? "",
      self: Number(row.self ?? 0),
      total: Number(row.total ?? 0),
      file: row.file ?? "",
      line: Number(row.line ?? 0),
      module: row.module ?? "",
    })),
    rowCount: Number(answer.rowCount ?? 0),
    total: Number(answer.total ?? 0),
    unit: answer.unit ?? "",
  };
}
