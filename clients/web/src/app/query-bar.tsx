// What is asked: profile type, label selector as chips or as text, grouping. Chips and text are two views of one thing.
import { useState } from "preact/hooks";
import { call } from "../api/connect";
import { useAnswer } from "../api/use-answer";
import { withRoom } from "./completion";
import { visibleName } from "../flame/names";
import { takeFocus } from "./focus";
import { formatCount } from "../units";
import { formatSelector, parseSelector, type Matcher } from "../selector";
import { change, param, shownPage, type Page } from "../url";
import { askingTexts } from "./asking-texts";
import { PageTabs } from "./page-tabs";
import { chooseType, rangeKey, selector, span, typeName, useProfileTypes } from "./question";
import { SelectorText, type Draft } from "./selector-text";
import { texts } from "./settings";
import "./query-bar.css";

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

// Longer ranges are not counted: a page that reads sums would wait for it.
const COUNTED_MS = 2 * 86_400_000;

function ProfileCount({ type }: { type: string }) {
  const { startMs, endMs } = span.value;
  const isCounted = type !== "" && endMs - startMs <= COUNTED_MS;
  const answer = useAnswer(isCounted ? `${rangeKey.value} ${type} ${selector.value}` : null, (abort) =>
    call<{ profileCount?: string }>(
      "hearth.v1.ProfileService/ProfileFacets",
      { filter: { labelSelector: selector.value, profileType: type, ...withinRange() }, labels: ["service_name"], limit: 1 },
      abort,
    ),
  );
  if (!isCounted || !answer.value || answer.error) {
    return null;
  }
  return <span class="muted number profile-count">{askingTexts.value.selector.profiles(formatCount(Number(answer.value.profileCount ?? 0)))}</span>;
}

function setSelector(q: string): void {
  change({ q, zoom: "" });
}

// The end of the i-th matcher's value in the text of the selector.
function draftAt(matchers: Matcher[], i: number): Draft {
  const before = formatSelector(matchers.slice(0, i + 1));
  return { text: formatSelector(matchers), caret: before.length - 2 };
}

function Chips({ matchers, onEdit }: { matchers: Matcher[]; onEdit(draft: Draft): void }) {
  return (
    <>
      {matchers.map((matcher, i) => {
        const name = visibleName(`${matcher.name}${matcher.op}${matcher.value}`);
        return (
          <span class="chip" key={name}>
            <button type="button" class="code" title={texts.value.editSelector} onClick={() => onEdit(draftAt(matchers, i))}>
              {name}
            </button>
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

export function QueryBar() {
  const [draft, setDraft] = useState<Draft | null>(null);
  // A key that ends the text leaves the focus at the button that opens it.
  const [isByKey, setIsByKey] = useState(false);
  const types = useProfileTypes().value ?? [];
  const type = chooseType(types);
  const matchers = parseSelector(selector.value);
  const names = useLabelNames();
  return (
    <div class="bar query" role="search" aria-label={texts.value.selector}>
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
      {draft || matchers === null ? (
        <SelectorText
          key={selector.value}
          draft={draft ?? { text: selector.value, caret: selector.value.length }}
          onDone={(byKey) => (setDraft(null), setIsByKey(byKey))}
        />
      ) : (
        <>
          <Chips matchers={matchers} onEdit={setDraft} />
          <button type="button" onClick={() => setDraft(withRoom(selector.value))}>
            {texts.value.addLabel}
          </button>
          <button
            id="edit-selector"
            ref={isByKey ? takeFocus : undefined}
            type="button"
            aria-keyshortcuts="/"
            aria-label={texts.value.editSelector}
            title={`${texts.value.editSelector} (/)`}
            onClick={() => setDraft({ text: selector.value, caret: Math.max(1, selector.value.length - 1) })}
          >
            {"{ }"}
          </button>
        </>
      )}
      {GROUPED.includes(shownPage.value) && (
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
      <span class="space" />
      <ProfileCount type={type?.ID ?? ""} />
    </div>
  );
}
