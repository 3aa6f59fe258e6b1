// Conditions on stack traces, each with a button that lifts it.
import { askingTexts } from "../app/asking-texts";
import { texts } from "../app/settings";
import { boundedName } from "../flame/names";
import { listParam, readRows, removeFrom, writeRows } from "./profile-state";

const LONGEST_NAME = 200;
const SHOWN_NAMES = 3;

interface Chip {
  key: string;
  text: string;
  remove(): void;
}

function bounded(names: string[]): string {
  const shown = names.slice(0, SHOWN_NAMES).map((name) => boundedName(name || askingTexts.value.table.unknown, LONGEST_NAME));
  return shown.join(", ") + (names.length > SHOWN_NAMES ? ` +${names.length - SHOWN_NAMES}` : "");
}

function chipsOfAddress(): Chip[] {
  const words = texts.value.profile;
  const functions = (["with", "without"] as const).flatMap((list) =>
    listParam(list).map((name) => ({
      key: list + name,
      text: (list === "with" ? words.containing : words.lacking)(boundedName(name, LONGEST_NAME)),
      remove: () => removeFrom(list, name),
    })),
  );
  const rows = readRows().map(({ kind, names }) => ({
    key: kind,
    text: askingTexts.value.chips.rows(askingTexts.value.table.kinds[kind], bounded(names)),
    remove: () => writeRows(kind, []),
  }));
  return [...functions, ...rows];
}

export function StackChips() {
  return (
    <>
      {chipsOfAddress().map(({ key, text, remove }) => (
        <span class="chip" key={key}>
          <span class="code">{text}</span>
          <button type="button" aria-label={texts.value.removeMatcher(text)} onClick={remove}>
            ✕
          </button>
        </span>
      ))}
    </>
  );
}
