// The table of functions; only the rows in view exist.
import { useMemo, useRef, useState } from "preact/hooks";
import { PageLink } from "../app/page-link";
import { texts } from "../app/settings";
import type { FunctionRow } from "../flame/functions";
import { visibleName } from "../flame/names";
import { param, question } from "../url";
import { ShareCell } from "./share-cell";

const ROW = 28;

type Column = "name" | "self" | "total";

interface Props {
  rows: FunctionRow[];
  total: number;
  unit: string;
  search: string;
  chosen: string;
  onChoose(name: string): void;
}

function matcher(search: string): (name: string) => boolean {
  try {
    const expression = new RegExp(search, "i");
    return (name) => expression.test(name);
  } catch {
    return (name) => name.includes(search);
  }
}

function sorted(rows: FunctionRow[], column: Column, isUp: boolean): FunctionRow[] {
  const sign = isUp ? 1 : -1;
  return [...rows].sort((a, b) =>
    column === "name" ? sign * (a.name < b.name ? -1 : 1) : sign * (a[column] - b[column]) || (a.name < b.name ? -1 : 1),
  );
}

export function FunctionTable({ rows, total, unit, search, chosen, onChoose }: Props) {
  const [column, setColumn] = useState<Column>("self");
  const [isUp, setIsUp] = useState(false);
  const [top, setTop] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const words = texts.value.profile;
  const { historyOf } = texts.value.comparing;

  const shown = useMemo(() => {
    const matches = search === "" ? () => true : matcher(search);
    return sorted(rows.filter((row) => matches(row.name)), column, isUp);
  }, [rows, search, column, isUp]);

  const first = Math.max(0, Math.floor(top / ROW) - 5);
  const height = box.current?.clientHeight ?? 600;
  const last = Math.min(shown.length, first + Math.ceil(height / ROW) + 12);

  const header = (name: Column, title: string) => (
    <th scope="col" class={name === "name" ? "" : "number"} aria-sort={column === name ? (isUp ? "ascending" : "descending") : "none"}>
      <button
        type="button"
        onClick={() => {
          setIsUp(column === name ? !isUp : name === "name");
          setColumn(name);
        }}
      >
        {title} {column === name ? (isUp ? "▴" : "▾") : ""}
      </button>
    </th>
  );

  return (
    <div class="functions" ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <table aria-rowcount={shown.length + 1}>
        <thead>
          <tr>
            {header("name", words.function)}
            {header("self", words.self)}
            {header("total", words.total)}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr class="gap" style={{ height: `${first * ROW}px` }} />}
          {shown.slice(first, last).map((row, i) => (
            <tr key={row.name} aria-rowindex={first + i + 2} aria-selected={row.name === chosen}>
              <th scope="row">
                <button type="button" class="code" title={visibleName(row.name)} onClick={() => onChoose(row.name)}>
                  {visibleName(row.name)}
                </button>
                <PageLink page="function" to={{ ...question(), by: param("by"), function: row.name }} aria-label={historyOf(visibleName(row.name))} title={historyOf(visibleName(row.name))} />
              </th>
              <ShareCell value={row.self} total={total} unit={unit} />
              <ShareCell value={row.total} total={total} unit={unit} />
            </tr>
          ))}
          {last < shown.length && <tr class="gap" style={{ height: `${(shown.length - last) * ROW}px` }} />}
        </tbody>
      </table>
    </div>
  );
}
