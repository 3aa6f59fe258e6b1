// The theme, which the documents share with the page, and the search over titles and headings.
"use strict";

const root = document.documentElement;

function keptTheme() {
  try {
    return localStorage.getItem("hearth.theme");
  } catch {
    return null; // storage is switched off
  }
}

function setTheme(theme) {
  root.dataset.theme = theme;
  try {
    localStorage.setItem("hearth.theme", theme);
  } catch {
    // As above: the choice lasts as long as the page.
  }
}

// At once, before the first paint.
root.dataset.theme = keptTheme() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

// ---- search ----

const MOST_FOUND = 20;
let index;

async function loadIndex() {
  index ??= fetch(root.dataset.root + "search.json").then((response) => response.json());
  return index;
}

/** Pages and headings that have every word, titles first. */
function search(pages, text) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const hasAll = (...texts) => words.every((word) => texts.some((each) => each.toLowerCase().includes(word)));
  const titles = [];
  const headings = [];
  for (const [address, title, inside] of words.length === 0 ? [] : pages) {
    if (hasAll(title)) titles.push({ address, title, heading: "" });
    for (const [heading, anchor] of inside) {
      // A word of the title alone would list every heading of the page.
      if (hasAll(title, heading) && !hasAll(title)) headings.push({ address: `${address}#${anchor}`, title, heading });
    }
  }
  return [...titles, ...headings];
}

function show(box, found, text) {
  box.replaceChildren();
  if (text.trim() === "") return;
  const count = document.createElement("p");
  count.textContent = found.length === 0 ? "Nothing found" : found.length > MOST_FOUND ? `The first ${MOST_FOUND} of ${found.length}` : `${found.length} found`;
  const list = document.createElement("ul");
  for (const { address, title, heading } of found.slice(0, MOST_FOUND)) {
    const link = document.createElement("a");
    link.href = root.dataset.root + address;
    link.textContent = heading === "" ? title : `${title} › ${heading}`;
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
  box.append(count, list);
}

addEventListener("DOMContentLoaded", () => {
  const input = document.querySelector("input[type=search]");
  const box = document.querySelector(".found");
  document.querySelector(".theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
  input.addEventListener("focus", () => loadIndex().catch(() => {}));
  input.addEventListener("input", async () => {
    try {
      const pages = await loadIndex();
      show(box, search(pages, input.value), input.value);
    } catch {
      box.textContent = "The list of headings could not be loaded: it needs a web server.";
    }
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") box.querySelector("a")?.click();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape" && input.value !== "") {
      input.value = "";
      show(box, [], "");
      input.focus();
    }
  });
});
