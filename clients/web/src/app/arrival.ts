// What tells a person that another page is shown: the title of the tab, and the focus at the beginning of its content.
import { effect } from "@preact/signals";
import { visibleText } from "../flame/names";
import { serviceOf } from "../selector";
import { param, shownPage } from "../url";
import { texts } from "./settings";

let lastPage = shownPage.value;

effect(() => {
  const page = shownPage.value;
  document.title = [visibleText(serviceOf(param("q", "{}"))), texts.value.pages[page], "Hearth"].filter((part) => part !== "").join(" · ");
  if (page !== lastPage) {
    lastPage = page;
    requestAnimationFrame(() => document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true }));
  }
});
