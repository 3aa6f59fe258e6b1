// What is asked: profile type, label selector as chips or as text, grouping.
import { useState } from "preact/hooks";
import { call } from "../api/connect";
import { useAnswer } from "../api/use-answer";
import { formatSelector, parseSelector, withMatcher, type Matcher } from "../selector";
import { address, change, param, type Page } from "../url";
import { chooseType, rangeKey, selector, span, typeName, useProfileTypes } from "./question";
import { PageTabs } from "./page-tabs";
import { texts } from "./settings";

// Pages whose charts have a line for each value of a label.
const GROUPED: Page[] = ["profile", "function"];

interface Names {
  names?: string[];
}

function withinRange(): { start: string; end: string } {
  return { start: String(Math.floor(span.value.startMs)), end: String(Math.floor(span.value.endMs)) };
}

export function useLabelNames(): string[] {
  const key = `${rangeKey.value} ${selector.value}`;
  const answer = useAnswer(key, (abort) =>
    call<Names>("querier.v1.QuerierService/LabelNames", { matchers: [selector.value], ...withinRange() }, abort),
  );
  return (answer.value?.names ?? []).filter((name) => !name.startsWith("__"));
}

function useLabelValues(name: string): string[] {
  const key = name === "" ? null : `${rangeKey.value} ${selector.value} ${name}`;
  const answer = useAnswer(key, (abort) =>
    call<Names>("querier.v1.QuerierService/LabelValues", { name, matchers: [selector.value], ...withinRange() }, abort),
  );
  return name === "" ? [] : (answer.value?.names ?? []);
}

function setSelector(q: string): void {
  change({ q, zoom: "" });
}

function Chips({ matchers }: { matchers: Matcher[] }) {
  return (
    <>
      {matchers.map((matcher, i) => {
        const name = `${matcher.name}${matcher.op}${matcher.value}`;
        return (
          <span class="chip" key={name}>
            <span class="code">{name}</span>
            <button
              type="button"
              aria-label={texts.value.removeMatcher(name)}
              onClick={() => setSelector(formatSelector(matchers.filter((_, k) => k !== i)))}
            >
              ✕
            </button>
          </span>
        );
      })}
    </>
  );
}

function AddLabel() {
  const [name, setName] = useState("");
  const names = useLabelNames();
  const values = useLabelValues(name);
  return (
    <>
      <select aria-label={texts.value.chooseLabel} value={name} onChange={(event) => setName(event.currentTarget.value)}>
        <option value="">{texts.value.addLabel}</option>
        {names.map((label) => (
          <option key={label}>{label}</option>
        ))}
      </select>
      {name !== "" && (
        <select
          aria-label={texts.value.chooseValue}
          value=""
          onChange={(event) => {
            setSelector(withMatcher(selector.value, { name, op: "=", value: event.currentTarget.value }));
            setName("");
          }}
        >
          <option value="">{texts.value.chooseValue}</option>
          {values.map((value) => (
            <option key={value}>{value}</option>
          ))}
        </select>
      )}
    </>
  );
}

function SelectorText({ onDone }: { onDone(): void }) {
  const [text, setText] = useState(selector.value);
  return (
    <form
      class="selector-text"
      onSubmit={(event) => {
        event.preventDefault();
        setSelector(text.trim() === "" ? "{}" : text.trim());
        onDone();
      }}
    >
      <input
        class="code"
        aria-label={texts.value.selector}
        placeholder={texts.value.selectorHint}
        value={text}
        spellcheck={false}
        ref={(input) => input?.focus()}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && onDone()}
        onBlur={onDone}
      />
    </form>
  );
}

export function QueryBar() {
  const [isText, setIsText] = useState(false);
  const types = useProfileTypes().value ?? [];
  const type = chooseType(types);
  const matchers = parseSelector(selector.value);
  const names = useLabelNames();
  return (
    <div class="bar query">
      <PageTabs />
      <select
        aria-label={texts.value.type}
        value={type?.ID ?? param("type")}
        onChange={(event) => change({ type: event.currentTarget.value, zoom: "" })}
      >
        {!type && <option value={param("type")}>{param("type") || texts.value.type}</option>}
        {types.map((each) => (
          <option key={each.ID} value={each.ID}>
            {typeName(each)}
          </option>
        ))}
      </select>
      {isText || matchers === null ? (
        <SelectorText key={selector.value} onDone={() => setIsText(false)} />
      ) : (
        <>
          <Chips matchers={matchers} />
          <AddLabel />
          <button id="edit-selector" type="button" title={texts.value.editSelector} onClick={() => setIsText(true)}>
            {"{ }"}
          </button>
        </>
      )}
      {GROUPED.includes(address.value.page) && (
        <select
          aria-label={texts.value.groupBy}
          value={param("by")}
          onChange={(event) => change({ by: event.currentTarget.value })}
        >
          <option value="">{texts.value.noGroup}</option>
          {names.map((name) => (
            <option key={name} value={name}>
              {texts.value.groupBy}: {name}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}
