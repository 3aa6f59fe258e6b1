// What tells a person that another page is shown: the title of the tab, and the focus at the beginning of its content.
import { effect } from "@preact/signals";
import { visibleText } from "../flame/names";
import { serviceOf } from "../selector";
import { address } from "../url";
import { texts } from "./settings";

let lastPage = address.value.page;

effect(() => {
  const { page, params } = address.value;
  document.title = [visibleText(serviceOf(params.q ?? "{}")), texts.value.pages[page], "Hearth"].filter((part) => part !== "").join(" · ");
  if (page !== lastPage) {
    lastPage = page;
    requestAnimationFrame(() => document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true }));
  }
});
