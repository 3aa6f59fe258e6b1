// The label selector as text: names, operators and values of what is stored, and the server's caret where it is wrong.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { call } from "../api/connect";
import { useAnswer } from "../api/use-answer";
import { choose, closed, matching, OPERATORS, placeOf, type Place } from "./completion";
import { change } from "../url";
import { askingTexts } from "./asking-texts";
import { rangeKey, span } from "./question";
import { SelectorCaret } from "./selector-caret";
import { texts } from "./settings";
import { Said } from "./said";

const MAX_SHOWN = 12;
// Which labels and values are used most is counted over the end of the range; the lists themselves are of all of it.
const RANKED_MS = 3_600_000;
const MAX_RANKED = 1000;

export interface Draft {
  text: string;
  caret: number;
}

interface Facets {
  facets?: { label: string; profileCount?: string; values?: { value?: string; profileCount?: string }[] }[];
}

interface Choice {
  text: string;
  count: number;
}

function withinRange(): { start: string; end: string } {
  return { start: String(Math.floor(span.value.startMs)), end: String(Math.floor(span.value.endMs)) };
}

function askNames(place: Place, abort: AbortSignal): Promise<{ names?: string[] }> {
  const asked = { matchers: [place.others], ...withinRange() };
  return place.kind === "value"
    ? call("querier.v1.QuerierService/LabelValues", { name: place.label, ...asked }, abort)
    : call("querier.v1.QuerierService/LabelNames", asked, abort);
}

// Uploads by label, or by value of the label at the place.
async function askUse(place: Place, abort: AbortSignal): Promise<Map<string, number>> {
  const { startMs, endMs } = span.value;
  const filter = {
    labelSelector: place.others,
    start: String(Math.floor(Math.max(startMs, endMs - RANKED_MS))),
    end: String(Math.floor(endMs)),
  };
  const labels = place.kind === "value" ? [place.label] : [];
  const message = { filter, labels, limit: place.kind === "value" ? MAX_RANKED : 1 };
  const { facets = [] } = await call<Facets>("hearth.v1.ProfileService/ProfileFacets", message, abort);
  const counted =
    place.kind === "value"
      ? (facets[0]?.values ?? []).map(({ value = "", profileCount }) => [value, Number(profileCount ?? 0)] as const)
      : facets.map(({ label, profileCount }) => [label, Number(profileCount ?? 0)] as const);
  return new Map(counted);
}

function useChoices(place: Place): Choice[] {
  const isAsked = place.kind === "name" || (place.kind === "value" && place.label !== "");
  const key = isAsked ? `${rangeKey.value} ${place.kind} ${place.label} ${place.others}` : null;
  const names = useAnswer(key, (abort) => askNames(place, abort).then((answer) => ({ key, names: answer.names ?? [] })));
  const use = useAnswer(key, (abort) => askUse(place, abort).then((counts) => ({ key, counts })));
  if (place.kind === "operator") {
    return matching(OPERATORS, place.typed, OPERATORS.length).map((text) => ({ text, count: 0 }));
  }
  // The choices of another place would be wrong here, so none are shown until these are known.
  const known = names.value?.key === key ? names.value.names.filter((name) => !name.startsWith("__")) : [];
  const counts = use.value?.key === key ? use.value.counts : new Map<string, number>();
  const count = (text: string) => counts.get(text) ?? 0;
  const ranked = counts.size === 0 ? known : [...known].sort((a, b) => count(b) - count(a));
  return matching(ranked, place.typed, MAX_SHOWN).map((text) => ({ text, count: count(text) }));
}

// The server reads the selector; asking it for names costs nothing.
async function refusalOf(text: string): Promise<Error | undefined> {
  try {
    await call("querier.v1.QuerierService/LabelNames", { matchers: [text], ...withinRange() });
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

function Refusal({ text, error }: { text: string; error: Error }) {
  return (
    <div class="selector-error error" role="alert">
      <SelectorCaret text={text} error={error} />
      <p>
        <Said text={error.message} />
      </p>
    </div>
  );
}

export function SelectorText({ draft, onDone }: { draft: Draft; onDone(isByKey: boolean): void }) {
  const [{ text, caret }, setTyped] = useState(draft);
  const [at, setAt] = useState(-1);
  const [isOpen, setIsOpen] = useState(true);
  const [refused, setRefused] = useState<{ text: string; error: Error } | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const place = placeOf(text, caret);
  const choices = useChoices(place);
  const isShown = isOpen && choices.length > 0 && place.kind !== "end";
  const chosen = isShown ? choices[at] : undefined;
  const words = askingTexts.value.selector;

  // A choice moves the caret, which the browser would put at the end.
  useLayoutEffect(() => {
    input.current!.focus();
    input.current!.setSelectionRange(caret, caret);
  }, [text]);

  const type = (next: Draft) => {
    setTyped(next);
    setAt(-1);
    setIsOpen(true);
    setRefused(null);
  };
  const apply = async () => {
    const q = closed(text);
    const error = await refusalOf(q);
    if (error) {
      setRefused({ text: q, error });
      setIsOpen(false);
    } else {
      change({ q, zoom: "" });
      onDone(true);
    }
  };
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && choices.length > 0) {
      setIsOpen(true);
      // One place more than there are choices: none, where Enter applies the text.
      setAt(((at + 1 + step + choices.length + 1) % (choices.length + 1)) - 1);
    } else if (event.key === "Tab" && !event.shiftKey && isShown) {
      type(choose(text, place, (chosen ?? choices[0]).text));
    } else if (event.key === "Enter" && chosen) {
      type(choose(text, place, chosen.text));
    } else if (event.key === "Enter") {
      void apply();
    } else if (event.key === "Escape" && isShown) {
      setIsOpen(false);
    } else if (event.key === "Escape") {
      onDone(true);
    } else {
      return;
    }
    event.preventDefault();
  };
  const onCaret = () => {
    const now = input.current!.selectionStart ?? text.length;
    if (now !== caret) {
      setTyped({ text: input.current!.value, caret: now });
      setAt(-1);
    }
  };

  return (
    <div class="selector-text">
      <input
        id="selector-text"
        class="code"
        role="combobox"
        aria-expanded={isShown}
        aria-controls="selector-choices"
        aria-autocomplete="list"
        aria-activedescendant={chosen ? `selector-choice-${at}` : undefined}
        aria-invalid={refused !== null}
        aria-label={texts.value.selector}
        placeholder={texts.value.selectorHint}
        value={text}
        spellcheck={false}
        autocomplete="off"
        ref={input}
        onInput={(event) => type({ text: event.currentTarget.value, caret: event.currentTarget.selectionStart ?? 0 })}
        onKeyDown={onKey}
        onKeyUp={onCaret}
        onClick={onCaret}
        onBlur={() => onDone(false)}
      />
      {(isShown || refused) && (
        // The focus stays in the field when somebody presses here.
        <div class="selector-below" onMouseDown={(event) => event.preventDefault()}>
          {refused && <Refusal {...refused} />}
          {isShown && (
            <>
              <ul id="selector-choices" role="listbox" aria-label={words.choices[place.kind]}>
                {choices.map((choice, i) => (
                  <li
                    key={choice.text}
                    id={`selector-choice-${i}`}
                    role="option"
                    aria-selected={i === at}
                    onClick={() => type(choose(text, place, choice.text))}
                  >
                    <span class="code">{choice.text}</span>
                    <span class="muted">
                      {place.kind === "operator" ? words.operators[choice.text] : choice.count > 0 ? words.uploads(String(choice.count)) : ""}
                    </span>
                  </li>
                ))}
              </ul>
              <p class="muted">{words.keys}</p>
            </>
          )}
        </div>
      )}
    </div>
  );
}
