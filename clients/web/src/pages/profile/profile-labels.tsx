// The values of a label as a table: how many profiles each has, and what they cost. Selected values narrow the selector.
import { askLabelStats } from "../../api/label-stats";
import type { TopRow, TopSort } from "../../api/top";
import { useAnswer } from "../../api/use-answer";
import { askingTexts } from "../../app/asking-texts";
import { selector } from "../../app/question";
import { texts } from "../../app/settings";
import { labelValues, withLabelValues } from "../../label-values";
import { formatCount, formatShare, formatValue } from "../../units";
import { change, param } from "../../url";
import type { CopiedTable } from "./copy-table";
import { Failure } from "../notice";
import type { Asked } from "./profile-cost";
import { PAGE_ROWS, RowCount, TableTools } from "./table-tools";
import { TopTable } from "./top-table";

const SORTS: TopSort[] = ["total", "self", "name"];

function matcher(filter: string): (value: string) => boolean {
  try {
    const expression = new RegExp(filter);
    return (value) => expression.test(value);
  } catch {
    return (value) => value.includes(filter);
  }
}

function sorted(rows: TopRow[], sort: TopSort, isReverse: boolean): TopRow[] {
  const byName = (a: TopRow, b: TopRow) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  const order = (a: TopRow, b: TopRow) => (sort === "name" ? byName(a, b) : b[sort] - a[sort] || byName(a, b));
  const inOrder = [...rows].sort(order);
  return isReverse ? inOrder.reverse() : inOrder;
}

function nameOf(row: TopRow): string {
  return row.name === "" ? askingTexts.value.table.noValue : row.name;
}

export function LabelTable({ asked: { selection, range }, label }: { asked: Asked; label: string }) {
  const words = askingTexts.value.table;
  const sort = SORTS.find((each) => each === param("sort")) ?? "total";
  const isReverse = param("reverse") === "1";
  const limit = Number(param("limit")) || PAGE_ROWS;
  // The values that were chosen here do not narrow their own table, or the others could not be added to them.
  const within = withLabelValues(selection.selector, label, []);
  const answer = useAnswer(`${range} ${selection.type} ${within} ${label} ${limit}`, (abort) =>
    askLabelStats({ ...selection, selector: within }, label, limit, abort).then((stats) => ({ stats, label })),
  );
  const stats = answer.value?.label === label ? answer.value.stats : undefined;

  const all = (stats?.values ?? []).map(({ value, profiles, total }) => ({ name: value, self: profiles, total, file: "", line: 0, module: "" }));
  const isShown = matcher(param("filter"));
  const rows = sorted(all.filter((row) => isShown(row.name)), sort, isReverse);
  const sum = (column: "self" | "total") => all.reduce((total, row) => total + row[column], 0);
  const [profiles, total, unit] = [sum("self"), sum("total"), stats?.unit ?? ""];

  const selected = labelValues(selector.value, label);
  const select = (values: string[]) => change({ q: withLabelValues(selector.value, label, values), zoom: "" });
  const isOnly = (name: string) => selected.length === 1 && selected[0] === name;
  const copied = (isForPeople: boolean): CopiedTable => ({
    header: [label, words.profiles, texts.value.profile.total + (isForPeople ? "" : ` (${unit})`)],
    rows: rows
      .filter((row) => selected.length === 0 || selected.includes(row.name))
      .map((row) => [
        nameOf(row),
        isForPeople ? formatCount(row.self) : String(row.self),
        isForPeople ? `${formatValue(row.total, unit)} (${formatShare(row.total, total)})` : String(row.total),
      ]),
  });
  const hasConditions = selection.functions.length + selection.without.length + (selection.rows?.length ?? 0) > 0;

  return (
    <div class="table-box" aria-busy={answer.isLoading}>
      <TableTools copied={stats && copied} />
      <Failure error={answer.error} />
      {hasConditions && <p class="muted">{words.wholeProfiles}</p>}
      <TopTable
        key={label}
        title={label}
        rows={rows}
        total={total}
        unit={unit}
        count={{ title: words.profiles, total: profiles }}
        sort={sort}
        isReverse={isReverse}
        opened={null}
        selected={selected}
        nameOf={nameOf}
        keyOf={(row) => row.name}
        onSort={(by, reverse) => change({ sort: by === "total" ? "" : by, reverse: reverse ? "1" : "" })}
        onOpen={(row) => select(isOnly(row.name) ? [] : [row.name])}
        onToggle={(row) => select(selected.includes(row.name) ? selected.filter((name) => name !== row.name) : [...selected, row.name])}
      />
      {stats && <RowCount shown={stats.values.length} all={stats.valueCount} page={PAGE_ROWS} />}
    </div>
  );
}
