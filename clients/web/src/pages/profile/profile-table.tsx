// The tables of a profile: one row for each function, line, file, class, package, library, thread or kind of frame.
import type { TopKind } from "../../api/encode";
import { askTop, type Top, type TopRow } from "../../api/top";
import { useAnswer } from "../../api/use-answer";
import { askingTexts } from "../../app/asking-texts";
import { texts } from "../../app/settings";
import { visibleName } from "../../flame/names";
import { formatCount, formatShare, formatValue } from "../../units";
import { change, param, question, type Params } from "../../url";
import type { CopiedTable } from "./copy-table";
import { Failure } from "../notice";
import type { Asked } from "./profile-cost";
import type { Hidden } from "./profile-background";
import { keyOfSelection, namesOfRows, writeRows } from "./profile-state";
import { LabelTable } from "./profile-labels";
import { labelOfTable, PAGE_ROWS, RowCount, tableOfAddress, TableTools } from "./table-tools";
import { TopTable } from "./top-table";

// A regular expression that matches exactly the name.
function literal(name: string): string {
  return "^" + name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") + "$";
}

function keyOf(kind: TopKind, row: TopRow): string {
  return kind === "LINE" ? `${row.name}:${row.line}` : row.name;
}

function nameOf(kind: TopKind, row: TopRow): string {
  return row.name === "" ? askingTexts.value.table.unknown : kind === "LINE" && row.line > 0 ? keyOf(kind, row) : row.name;
}

// Functions and lines are shown in the graph; the other rows narrow the question, as only the server knows their frames.
function open(kind: TopKind, row: TopRow): void {
  const isFunction = kind === "FUNCTION" || kind === "LINE";
  if (isFunction && param("view") === "sandwich") {
    change({ function: row.name });
  } else if (isFunction) {
    const search = literal(row.name);
    change({ search: param("search") === search ? "" : search });
  } else {
    const names = namesOfRows(kind);
    writeRows(kind, names.length === 1 && names[0] === row.name ? [] : [row.name]);
  }
}

// The row of the function that the graph shows.
function openedOf(kind: TopKind, rows: TopRow[]): string | null {
  if (param("view") === "sandwich") {
    return param("function") || null;
  }
  const search = param("search");
  return (kind === "FUNCTION" && search.startsWith("^") && rows.find((row) => literal(row.name) === search)?.name) || null;
}

function historyOf(row: TopRow): { to: Params; label: string } {
  const to = { ...question(), by: param("by"), function: row.name };
  return { to, label: texts.value.comparing.historyOf(visibleName(row.name)) };
}

function toggle(kind: TopKind, row: TopRow): void {
  const names = namesOfRows(kind);
  const key = keyOf(kind, row);
  writeRows(kind, names.includes(key) ? names.filter((name) => name !== key) : [...names, key]);
}

function copied(kind: TopKind, { rows, total, unit }: Top, isForPeople: boolean): CopiedTable {
  const words = texts.value.profile;
  const selected = namesOfRows(kind);
  const chosen = rows.filter((row) => selected.length === 0 || selected.includes(keyOf(kind, row)));
  const cells = (value: number) => (isForPeople ? `${formatValue(value, unit)} (${formatShare(value, total)})` : String(value));
  const of = isForPeople ? "" : ` (${unit})`;
  return {
    header: [askingTexts.value.table.kinds[kind], words.self + of, words.total + of],
    rows: chosen.map((row) => [nameOf(kind, row), cells(row.self), cells(row.total)]),
  };
}

export function ProfileTable(props: { asked: Asked; hidden: Hidden }) {
  const label = labelOfTable();
  return label === "" ? <RowsTable {...props} /> : <LabelTable asked={props.asked} label={label} />;
}

function RowsTable({ asked: { selection, range }, hidden }: { asked: Asked; hidden: Hidden }) {
  const words = askingTexts.value.table;
  const { kind, sort } = tableOfAddress();
  const isReverse = param("reverse") === "1";
  const limit = Number(param("limit")) || PAGE_ROWS;
  const filter = param("filter");

  // The rows that were chosen in this table do not narrow it, or the others could not be added to them.
  const asked = { ...selection, rows: selection.rows?.filter((rows) => rows.kind !== kind) };
  const key = `${range} ${keyOfSelection(asked)} ${kind} ${sort} ${isReverse} ${limit} ${filter}`;
  const answer = useAnswer(key, (abort) =>
    askTop({ selection: asked, kind, search: filter, sort, isReverse, limit }, abort).then((top) => ({ kind, top })),
  );
  // The rows of another table have other names than those that the address has.
  const top = answer.value?.kind === kind ? answer.value.top : undefined;

  const isOfFunctions = kind === "FUNCTION" || kind === "LINE";
  const rows = top?.rows.filter((row) => !isOfFunctions || !hidden.has(row.name)) ?? [];
  const left = (top?.rows.length ?? 0) - rows.length;

  return (
    <div class="table-box" aria-busy={answer.isLoading}>
      <TableTools copied={top && ((isForPeople) => copied(kind, { ...top, rows }, isForPeople))} />
      <Failure error={answer.error} />
      <TopTable
        key={kind}
        title={words.kinds[kind]}
        rows={rows}
        total={top?.total ?? 0}
        unit={top?.unit ?? ""}
        sort={sort}
        isReverse={isReverse}
        opened={openedOf(kind, rows)}
        selected={namesOfRows(kind)}
        nameOf={(row) => nameOf(kind, row)}
        keyOf={(row) => keyOf(kind, row)}
        onSort={(by, reverse) => change({ sort: by === "self" ? "" : by, reverse: reverse ? "1" : "" })}
        onOpen={(row) => open(kind, row)}
        onToggle={(row) => toggle(kind, row)}
        more={kind === "FUNCTION" ? historyOf : undefined}
      />
      {top && (
        <RowCount shown={top.rows.length} all={top.rowCount} page={PAGE_ROWS}>
          {left > 0 && words.hidden(formatCount(left))}
        </RowCount>
      )}
    </div>
  );
}
