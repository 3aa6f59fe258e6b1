// What stands above and below a table: which rows it has, a filter, copies, and how many rows there are.
import type { ComponentChildren } from "preact";
import { TOP_KINDS, type TopKind } from "../../api/encode";
import type { TopSort } from "../../api/top";
import { askingTexts } from "../../app/asking-texts";
import { useLabelNames } from "../../app/query-bar";
import { formatCount } from "../../units";
import { change, param } from "../../url";
import { markdownOf, tsvOf, type CopiedTable } from "./copy-table";
import { copyText } from "../../copy";

export const PAGE_ROWS = 500;

const LABEL = "label ";
const SORTS: TopSort[] = ["self", "total", "name"];

export function tableOfAddress(): { kind: TopKind; sort: TopSort } {
  const kind = TOP_KINDS.find((each) => each === param("table").toUpperCase()) ?? "FUNCTION";
  return { kind, sort: SORTS.find((each) => each === param("sort")) ?? "self" };
}

// The label whose values are the rows of the table, or "".
export function labelOfTable(): string {
  return param("table").startsWith(LABEL) ? param("table").slice(LABEL.length) : "";
}

function Copy({ copied }: { copied(isForPeople: boolean): CopiedTable }) {
  const words = askingTexts.value.table;
  return (
    <select
      aria-label={words.copy}
      value=""
      onChange={(event) => {
        void copyText(event.currentTarget.value === "TSV" ? tsvOf(copied(false)) : markdownOf(copied(true)));
        event.currentTarget.value = "";
      }}
    >
      <option value="">{words.copy}</option>
      {["TSV", "Markdown"].map((form) => (
        <option key={form}>{form}</option>
      ))}
    </select>
  );
}

export function TableTools({ copied }: { copied?(isForPeople: boolean): CopiedTable }) {
  const words = askingTexts.value.table;
  const labels = useLabelNames();
  const chosen = labelOfTable();
  const listed = chosen === "" || labels.includes(chosen) ? labels : [chosen, ...labels];
  return (
    <div class="table-tools">
      <select
        aria-label={words.kind}
        value={param("table", "function")}
        onChange={(event) => change({ table: event.currentTarget.value, filter: "", limit: "", sort: "", reverse: "" })}
      >
        {TOP_KINDS.map((each) => (
          <option key={each} value={each.toLowerCase()}>
            {words.kinds[each]}
          </option>
        ))}
        <optgroup label={words.labels}>
          {listed.map((label) => (
            <option key={label} value={LABEL + label}>
              {label}
            </option>
          ))}
        </optgroup>
      </select>
      <input
        type="search"
        aria-label={words.filter}
        placeholder={words.filter}
        value={param("filter")}
        spellcheck={false}
        onChange={(event) => change({ filter: event.currentTarget.value, limit: "" })}
      />
      {copied && <Copy copied={copied} />}
    </div>
  );
}

export function RowCount({ shown, all, page, children }: { shown: number; all: number; page: number; children?: ComponentChildren }) {
  const words = askingTexts.value.table;
  return (
    <p class="muted table-count" role="status">
      {shown < all ? words.part(formatCount(shown), formatCount(all)) : words.rows(formatCount(all))} {children}{" "}
      {shown < all && (
        <button type="button" onClick={() => change({ limit: String(shown + page) })}>
          {words.more(formatCount(Math.min(page, all - shown)))}
        </button>
      )}
    </p>
  );
}
