// Conditions on stack traces, each with a button that lifts it.
import { askingTexts } from "../../app/asking-texts";
import { texts } from "../../app/settings";
import { boundedName } from "../../flame/names";
import { BACKGROUND } from "./background";
import { formatShare } from "../../units";
import { backgroundOfAddress, type Hidden } from "./profile-background";
import { addTo, listParam, readRows, removeFrom, writeRows } from "./profile-state";

const LONGEST_NAME = 200;
const SHOWN_NAMES = 3;

interface Chip {
  key: string;
  text: string;
  hint?: string;
  remove(): void;
}

function bounded(names: string[]): string {
  const shown = names.slice(0, SHOWN_NAMES).map((name) => boundedName(name || askingTexts.value.table.unknown, LONGEST_NAME));
  return shown.join(", ") + (names.length > SHOWN_NAMES ? ` +${names.length - SHOWN_NAMES}` : "");
}

function chipsOfAddress(hidden: Hidden): Chip[] {
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
  const background = hidden.kinds.map((kind) => {
    const share = hidden.share(kind);
    return {
      key: "hide " + kind,
      text: askingTexts.value.background.hidden(askingTexts.value.background.kinds[kind], share === undefined ? "…" : formatShare(share, 1)),
      hint: askingTexts.value.background.hint,
      remove: () => removeFrom("hide", kind),
    };
  });
  return [...functions, ...rows, ...background];
}

// Offers the kinds of background code that are still in sight.
export function HideBackground() {
  const words = askingTexts.value.background;
  const shown = BACKGROUND.filter((kind) => !backgroundOfAddress().includes(kind));
  return (
    <select
      aria-label={words.hide}
      title={words.hint}
      value=""
      onChange={(event) => {
        addTo("hide", event.currentTarget.value);
        event.currentTarget.value = "";
      }}
    >
      <option value="">{words.hide}</option>
      {shown.map((kind) => (
        <option key={kind} value={kind}>
          {words.kinds[kind]}
        </option>
      ))}
    </select>
  );
}

export function StackChips({ hidden }: { hidden: Hidden }) {
  return (
    <>
      {chipsOfAddress(hidden).map(({ key, text, hint, remove }) => (
        <span class="chip" key={key} title={hint}>
          <span class="code">{text}</span>
          <button type="button" aria-label={texts.value.removeMatcher(text)} onClick={remove}>
            ✕
          </button>
        </span>
      ))}
    </>
  );
}
