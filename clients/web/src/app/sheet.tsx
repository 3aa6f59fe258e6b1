// The two bars on a narrow window: one line that says what is asked, and a sheet with everything to change it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { parseSelector } from "../selector";
import { param, shownPage } from "../url";
import { askingTexts } from "./asking-texts";
import { partsOfType, rangeName, selector } from "./question";
import { texts } from "./settings";

// "shop eu · process_cpu cpu · last 1 h"
function summary(hasQuestion: boolean): string {
  const matchers = parseSelector(selector.value);
  const values = matchers ? matchers.map(({ value }) => value).join(" ") : selector.value;
  const type = param("type") && partsOfType(param("type")).name;
  return (hasQuestion ? [values, type, rangeName()] : [rangeName()]).filter((part) => part !== "").join(" · ");
}

export function FoldedBar({ hasQuestion, onOpen }: { hasQuestion: boolean; onOpen(): void }) {
  return (
    <header class="bar folded">
      <b>{texts.value.pages[shownPage.value]}</b>
      <button type="button" class="summary" aria-haspopup="dialog" title={askingTexts.value.sheet.open} onClick={onOpen}>
        <span>{summary(hasQuestion)}</span>
        <span aria-hidden="true">▾</span>
      </button>
    </header>
  );
}

export function Sheet({ children, onClose }: { children: ComponentChildren; onClose(): void }) {
  const box = useRef<HTMLDialogElement>(null);
  const page = shownPage.value;
  const opened = useRef(page);
  useEffect(() => box.current!.showModal(), []);
  // Another page was chosen.
  useEffect(() => {
    if (page !== opened.current) {
      onClose();
    }
  }, [page]);
  return (
    <dialog
      class="asking-sheet"
      ref={box}
      aria-label={askingTexts.value.sheet.open}
      onClose={onClose}
      onClick={(event) => event.target === box.current && onClose()}
    >
      {children}
      <button type="button" class="primary" onClick={onClose}>
        {askingTexts.value.sheet.done}
      </button>
    </dialog>
  );
}
