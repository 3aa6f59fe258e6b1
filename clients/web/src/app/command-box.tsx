// Ctrl K: everything that can be reached by typing its name.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, refreshes } from "../api/connect";
import { askTop } from "../api/functions";
import { useAnswer } from "../api/use-answer";
import { boundedName } from "../flame/names";
import { formatSelector } from "../selector";
import { go, PAGES, question } from "../url";
import { chooseType, freeze, rangeKey, selector, span, useProfileTypes } from "./question";
import { texts, toggleLanguage, toggleTheme } from "./settings";

const MAX_SHOWN = 12;
const MAX_FUNCTIONS = 6;
const MIN_TYPED = 3;
const TYPING_MS = 250;
const LONGEST_NAME = 120;
// What a trace id looks like; a service may have any other name.
const TRACE_ID = /^[0-9a-f]{16}([0-9a-f]{16})?$/i;

interface Command {
  name: string;
  kind: string;
  run(): void;
}

function useServices(): string[] {
  const answer = useAnswer(rangeKey.value, (abort) =>
    call<{ names?: string[] }>(
      "querier.v1.QuerierService/LabelValues",
      { name: "service_name", start: String(Math.floor(span.value.startMs)), end: String(Math.floor(span.value.endMs)) },
      abort,
    ),
  );
  return answer.value?.names ?? [];
}

// Functions of what the page asks about, when enough is typed and the typing rests.
function useFunctions(typed: string): string[] {
  const [text, setText] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setText(typed.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const type = chooseType(useProfileTypes().value ?? []);
  const key = type && text.length >= MIN_TYPED && text === typed.trim() ? `${rangeKey.value} ${type.ID} ${selector.value} ${text}` : null;
  const top = useAnswer(key, (abort) => askTop({ type: type!.ID, selector: selector.value, span: span.value }, text, MAX_FUNCTIONS, abort));
  return (top.value?.rows ?? []).map(({ name = "" }) => name).filter((name) => name !== "");
}

function commandsFor(typed: string, services: string[], functions: string[]): Command[] {
  const words = texts.value;
  const wanted = typed.trim().toLowerCase();
  const all: Command[] = [
    ...PAGES.map((page) => ({ name: words.pages[page], kind: words.commands.page, run: () => go(page, question()) })),
    { name: words.freeze, kind: words.commands.action, run: freeze },
    { name: words.refresh, kind: words.commands.action, run: () => void refreshes.value++ },
    { name: words.theme, kind: words.commands.action, run: toggleTheme },
    { name: words.otherLanguage, kind: words.commands.action, run: toggleLanguage },
    ...services.map((service) => ({
      name: service,
      kind: words.explore.service,
      run: () => go("profile", { ...question(), q: formatSelector([{ name: "service_name", op: "=", value: service }]) }),
    })),
  ];
  const found = all.filter(({ name }) => name.toLowerCase().includes(wanted));
  if (TRACE_ID.test(wanted)) {
    found.unshift({ name: wanted, kind: words.pages.traces, run: () => go("traces", { ...question(), id: wanted }) });
  }
  const named = functions.map((name) => ({
    name: boundedName(name, LONGEST_NAME),
    kind: words.comparing.functionCommand,
    run: () => go("function", { ...question(), function: name }),
  }));
  return [...found.slice(0, MAX_SHOWN - named.length), ...named];
}

export function CommandBox({ onClose }: { onClose(): void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const commands = commandsFor(typed, useServices(), useFunctions(typed));

  // Before the next key arrives, which belongs to the box.
  useLayoutEffect(() => box.current!.showModal(), []);

  const run = (command?: Command) => {
    if (command) {
      onClose();
      command.run();
    }
  };
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      setAt((at + step + commands.length) % Math.max(1, commands.length));
    } else if (event.key === "Enter") {
      run(commands[at]);
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <dialog class="commands" ref={box} aria-label={texts.value.commands.title} onClose={onClose} onClick={(event) => event.target === box.current && onClose()}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={commands.length > 0 ? `command-${at}` : undefined}
        aria-label={texts.value.commands.title}
        placeholder={texts.value.commands.hint}
        value={typed}
        spellcheck={false}
        autofocus
        onKeyDown={onKey}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setAt(0);
        }}
      />
      <ul id="commands" role="listbox" aria-label={texts.value.commands.title}>
        {commands.map((command, i) => (
          <li key={command.kind + command.name} id={`command-${i}`} role="option" aria-selected={i === at} onClick={() => run(command)}>
            {command.name} <span class="muted">{command.kind}</span>
          </li>
        ))}
      </ul>
    </dialog>
  );
}
