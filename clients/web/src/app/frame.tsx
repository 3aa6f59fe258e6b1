// The two bars above every page, keys that work everywhere, and the log-in that takes the page's place.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { needsLogin, refreshes } from "../api/connect";
import { shownNotes } from "../api/use-answer";
import { toLocal } from "../time";
import { address, change, go, PAGES, param, PARENTS, question, shownPage } from "../url";
import { Login } from "../pages/login";
import { Notes } from "../pages/notice";
import { askingTexts } from "./asking-texts";
import { CommandBox } from "./command-box";
import { isNarrow } from "./narrow";
import { QueryBar } from "./query-bar";
import { freeze, range, rangeName, span, zoneNames } from "./question";
import { PageLink } from "./page-link";
import { useWho } from "./who";
import { FoldedBar, Sheet } from "./sheet";
import { texts, theme, toggleLanguage, toggleTheme } from "./settings";

const ABSOLUTE = "absolute";
const HAS_QUERY_BAR = ["explore", "profile", "diff", "traces", "profiles", "compare", "function", "heatmap"];

// A trace or a profile that is named by its id needs no question.
function hasQueryBar(): boolean {
  return HAS_QUERY_BAR.includes(shownPage.value) && param("id") === "";
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}

function onKey(event: KeyboardEvent, openSheet: () => void): void {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  if (event.key === "t") {
    toggleTheme();
  } else if (event.key === "?") {
    go("help", {});
  } else if (event.key === "/") {
    event.preventDefault();
    openSheet();
    document.querySelector<HTMLElement>("#edit-selector")?.click();
    document.querySelector<HTMLElement>("#selector-text")?.focus();
  }
}

function Link({ page, label, children }: { page: (typeof PAGES)[number]; label?: string; children: ComponentChildren }) {
  return (
    <PageLink page={page} label={label} to={page === "help" ? {} : question()} isCurrent={(PARENTS[shownPage.value] ?? shownPage.value) === page}>
      {children}
    </PageLink>
  );
}

function AbsoluteRange({ onDone }: { onDone(): void }) {
  const field = (name: string, label: string, ms: number) => (
    <input type="datetime-local" name={name} aria-label={label} defaultValue={toLocal(ms)} required />
  );
  return (
    <form
      class="absolute-range"
      onSubmit={(event) => {
        event.preventDefault();
        const fields = new FormData(event.currentTarget);
        const [from, to] = ["from", "to"].map((name) => new Date(String(fields.get(name))).getTime());
        if (from < to) {
          change({ from: String(from), to: String(to), whole: "" });
          onDone();
        }
      }}
    >
      {field("from", texts.value.from, span.value.startMs)}
      {field("to", texts.value.to, span.value.endMs)}
      <button type="submit">{texts.value.apply}</button>
    </form>
  );
}

function RangePicker() {
  const [isAbsolute, setIsAbsolute] = useState(false);
  const { from, to } = range.value;
  const known = to === "now" && from in texts.value.ranges;
  const zone = zoneNames();
  return (
    <span class="range">
      <select
        aria-label={texts.value.range}
        value={known ? from : ""}
        onChange={(event) => {
          const chosen = event.currentTarget.value;
          setIsAbsolute(chosen === ABSOLUTE);
          if (chosen === ABSOLUTE) {
            event.currentTarget.value = known ? from : "";
          } else if (chosen !== "") {
            change({ from: chosen, to: "now", whole: "" });
          }
        }}
      >
        {!known && <option value="">{rangeName()}</option>}
        {Object.entries(texts.value.ranges).map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
        <option value={ABSOLUTE}>{texts.value.absolute}</option>
      </select>
      <span class="muted zone" title={askingTexts.value.range.zone(zone.long)}>
        {zone.short}
      </span>
      {isAbsolute && <AbsoluteRange onDone={() => setIsAbsolute(false)} />}
      {to === "now" && (
        <button type="button" title={texts.value.freezeHint} onClick={freeze}>
          {texts.value.freeze}
        </button>
      )}
      <button type="button" onClick={() => refreshes.value++}>
        {texts.value.refresh}
      </button>
    </span>
  );
}

function Person() {
  const who = useWho().value;
  // Without authentication there is nobody to name.
  if (!who?.subject?.startsWith("user:")) {
    return null;
  }
  const logOut = async () => {
    await fetch("/api/v1/logout", { method: "POST" });
    needsLogin.value = true;
  };
  return (
    <button type="button" title={texts.value.login.logout} onClick={logOut}>
      {who.name}
    </button>
  );
}

function Pages() {
  return (
    <nav aria-label={texts.value.allPages}>
      {PAGES.filter((page) => page !== "help" && !PARENTS[page]).map((page) => (
        <Link key={page} page={page}>
          {texts.value.pages[page]}
        </Link>
      ))}
    </nav>
  );
}

function Looks() {
  return (
    <>
      <Link page="help" label={texts.value.pages.help}>
        ?
      </Link>
      <button type="button" class="theme" aria-label={texts.value.theme} title={texts.value.theme} onClick={toggleTheme}>
        {theme.value === "dark" ? "☀" : "☾"}
      </button>
      <button type="button" lang={texts.value.otherLanguage === "中文" ? "zh" : "en"} onClick={toggleLanguage}>
        {texts.value.otherLanguage}
      </button>
      <Person />
    </>
  );
}

export function Frame({ children }: { children: ComponentChildren }) {
  const [isCommanding, setIsCommanding] = useState(false);
  const [isSheet, setIsSheet] = useState(false);
  useEffect(() => {
    const onAnyKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        setIsCommanding(true);
      } else {
        onKey(event, () => setIsSheet(isNarrow.value));
      }
    };
    document.addEventListener("keydown", onAnyKey);
    return () => document.removeEventListener("keydown", onAnyKey);
  }, []);

  const hasQuestion = !needsLogin.value && hasQueryBar();
  const { unknownPath } = address.value;
  const commands = (
    <button type="button" aria-keyshortcuts="Control+K" onClick={() => setIsCommanding(true)}>
      {texts.value.commands.title} <kbd class="muted">Ctrl K</kbd>
    </button>
  );
  return (
    <>
      {isNarrow.value ? (
        <FoldedBar hasQuestion={hasQuestion} onOpen={() => setIsSheet(true)} />
      ) : (
        <header class="bar">
          <a class="mark" href="/" onClick={(event) => (event.preventDefault(), go("explore", question()))}>
            hearth
          </a>
          <Pages />
          <span class="space" />
          {commands}
          <RangePicker />
          <Looks />
        </header>
      )}
      {!isNarrow.value && hasQuestion && <QueryBar />}
      {isNarrow.value && isSheet && (
        <Sheet onClose={() => setIsSheet(false)}>
          <Pages />
          {hasQuestion && <QueryBar />}
          <RangePicker />
          <div class="inline">
            {commands}
            <Looks />
          </div>
        </Sheet>
      )}
      {isCommanding && !needsLogin.value && <CommandBox onClose={() => setIsCommanding(false)} />}
      <main tabIndex={-1}>
        <Notes notes={[unknownPath && texts.value.unknownPath(unknownPath), ...shownNotes()]} />
        {needsLogin.value ? <Login /> : children}
      </main>
    </>
  );
}
