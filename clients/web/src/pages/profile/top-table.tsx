// The rows of a table of Top; only those in view exist. j and k move, Enter opens, x selects.
import { useEffect, useRef, useState } from "preact/hooks";
import type { TopRow, TopSort } from "../../api/top";
import { askingTexts } from "../../app/asking-texts";
import { PageLink } from "../../app/page-link";
import { texts } from "../../app/settings";
import { shortName, visibleName } from "../../flame/names";
import type { Params } from "../../url";
import { ShareCell } from "../share-cell";

const ROW = 28;
const PAGE_ROWS = 10;
// Shorter names fit, and are not worth two elements.
const LONG_NAME = 24;

interface Props {
  title: string;
  rows: TopRow[];
  total: number;
  unit: string;
  // Where the first number is a count and no self.
  count?: { title: string; total: number };
  sort: TopSort;
  isReverse: boolean;
  // The row that is shown elsewhere on the page, and those that narrow the question.
  opened: string | null;
  selected: string[];
  nameOf(row: TopRow): string;
  keyOf(row: TopRow): string;
  onSort(sort: TopSort, isReverse: boolean): void;
  onOpen(row: TopRow): void;
  onToggle(row: TopRow): void;
  // Where more is said of a row, and the name of that link.
  more?(row: TopRow): { to: Params; label: string };
}

function place(row: TopRow): string {
  const file = row.file && row.line > 0 ? `${row.file}:${row.line}` : row.file;
  return [file, row.module].filter((part) => part !== "").map((part) => "\n" + visibleName(part)).join("");
}

// The end of a name tells more than its beginning, so a name that is too long loses its middle.
function Name({ name }: { name: string }) {
  const shown = visibleName(name);
  const end = shortName(shown);
  const isWhole = shown.length < LONG_NAME || end.length === shown.length || !shown.endsWith(end);
  return isWhole ? (
    <span class="name">{shown}</span>
  ) : (
    <>
      <span class="name">{shown.slice(0, shown.length - end.length)}</span>
      <span class="name end">{end}</span>
    </>
  );
}

// The row that a key leads to, or undefined for any other key.
function moved(key: string, at: number, n: number): number | undefined {
  const steps: Record<string, number> = {
    j: at + 1, ArrowDown: at + 1, k: at - 1, ArrowUp: at - 1, PageDown: at + PAGE_ROWS, PageUp: at - PAGE_ROWS, Home: 0, End: n - 1,
  };
  return key in steps ? Math.max(0, Math.min(n - 1, steps[key]!)) : undefined;
}

export function TopTable(props: Props) {
  const { rows, total, unit, count, sort, isReverse } = props;
  const [top, setTop] = useState(0);
  const [cursor, setCursor] = useState(0);
  const isMoved = useRef(false);
  const box = useRef<HTMLDivElement>(null);
  const words = texts.value.profile;

  const at = Math.min(cursor, rows.length - 1);
  const first = Math.max(0, Math.floor(top / ROW) - 5);
  const height = box.current?.clientHeight || 600;
  const last = Math.min(rows.length, first + Math.ceil(height / ROW) + 12);

  useEffect(() => {
    if (isMoved.current) {
      isMoved.current = false;
      box.current!.querySelector<HTMLElement>("tbody button[tabindex='0']")?.focus({ preventScroll: true });
    }
  });

  const moveTo = (row: number) => {
    const scroller = box.current!;
    isMoved.current = true;
    // The header covers the first row's height.
    scroller.scrollTop = Math.min(row * ROW, Math.max(scroller.scrollTop, (row + 2) * ROW - scroller.clientHeight));
    setTop(scroller.scrollTop);
    setCursor(row);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || rows.length === 0 || (event.target as HTMLElement).closest("thead")) {
      return;
    }
    const to = moved(event.key, at, rows.length);
    if (to !== undefined) {
      moveTo(to);
    } else if (event.key === "x") {
      props.onToggle(rows[at]);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const header = (name: TopSort, title: string) => (
    <th
      scope="col"
      class={name === "name" ? "" : "number"}
      // Numbers begin with the largest, names with the first.
      aria-sort={sort !== name ? "none" : (name === "name") === isReverse ? "descending" : "ascending"}
    >
      <button type="button" onClick={() => props.onSort(name, sort === name && !isReverse)}>
        {title} {sort === name ? ((name === "name") === isReverse ? "▾" : "▴") : ""}
      </button>
    </th>
  );

  return (
    <div class="functions" ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)} onKeyDown={onKey}>
      <table aria-rowcount={rows.length + 1} aria-label={props.title}>
        <thead>
          <tr>
            <td class="check" />
            {header("name", props.title)}
            {header("self", count?.title ?? words.self)}
            {header("total", words.total)}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr class="gap" style={{ height: `${first * ROW}px` }} />}
          {rows.slice(first, last).map((row, i) => {
            const key = props.keyOf(row);
            const name = props.nameOf(row);
            const tab = first + i === at ? 0 : -1;
            const more = props.more?.(row);
            return (
              <tr key={key} aria-rowindex={first + i + 2} aria-selected={key === props.opened} onFocusIn={() => setCursor(first + i)}>
                <td class="check">
                  <label>
                    <input
                      type="checkbox"
                      tabIndex={tab}
                      aria-label={askingTexts.value.table.narrow(visibleName(name))}
                      checked={props.selected.includes(key)}
                      onChange={() => props.onToggle(row)}
                    />
                  </label>
                </td>
                <th scope="row">
                  <button type="button" class="code" tabIndex={tab} title={visibleName(name) + place(row)} onClick={() => props.onOpen(row)}>
                    <Name name={name} />
                  </button>
                  {more && <PageLink page="function" to={more.to} label={more.label} title={more.label} tabIndex={tab} />}
                </th>
                <ShareCell value={row.self} total={count?.total ?? total} unit={count ? "count" : unit} />
                <ShareCell value={row.total} total={total} unit={unit} />
              </tr>
            );
          })}
          {last < rows.length && <tr class="gap" style={{ height: `${(rows.length - last) * ROW}px` }} />}
        </tbody>
      </table>
    </div>
  );
}
