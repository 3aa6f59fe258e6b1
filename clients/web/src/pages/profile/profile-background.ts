// Background that the address hides: its frames vanish from the graph and its rows from the table, and what they cost is
// counted as their callers'.
import { askTop, type TopRow } from "../../api/top";
import { useAnswer } from "../../api/use-answer";
import { isBackgroundCode, BACKGROUND, type Background } from "./background";
import type { Asked } from "./profile-cost";
import { listParam } from "./profile-state";

// The functions with the largest self. Those beyond are known by their names only.
const MAX_FUNCTIONS = 10_000;

export interface Hidden {
  kinds: Background[];
  // Of the total, by kind; undefined until the server has answered.
  share(kind: Background): number | undefined;
  has(name: string): boolean;
  // Another one whenever `has` may answer otherwise.
  answer: unknown;
}

export function backgroundOfAddress(): Background[] {
  const listed = listParam("hide");
  return BACKGROUND.filter((kind) => listed.includes(kind));
}

export function useHidden(asked: Asked | null): Hidden {
  const kinds = backgroundOfAddress();
  const key = asked && kinds.length > 0 ? asked.key : null;
  const top = useAnswer(key, (abort) =>
    askTop(
      { selection: asked!.selection, kind: "FUNCTION", search: "", sort: "self", isReverse: false, limit: MAX_FUNCTIONS },
      abort,
    ).then((found) => ({ ...found, byName: new Map(found.rows.map((row) => [row.name, row] as const)) })),
  );
  const { rows = [], total = 0, byName } = top.value ?? {};
  const judge = (of: Background[], name: string, row?: TopRow) => isBackgroundCode(of, { name, file: row?.file ?? "", module: row?.module ?? "" });
  return {
    kinds,
    answer: top.value,
    // A function of two kinds counts for the first, so that shares of several kinds can be added.
    share: (kind) =>
      total > 0
        ? rows.reduce((sum, row) => sum + (kinds.find((each) => judge([each], row.name, row)) === kind ? row.self : 0), 0) / total
        : undefined,
    has: (name) => kinds.length > 0 && judge(kinds, name, byName?.get(name)),
  };
}
