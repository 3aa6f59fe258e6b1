// Makes pages of the documents:
//
//   node site.mjs TREE OUT PACKED [REPOSITORY]
//
// OUT has the site for any web server. PACKED has what is built into hearthd: NAME.gz instead of NAME where that is
// smaller. REPOSITORY is the address of the tree's files, for links to what is no document;
// without it they are plain text.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix, relative as relativePath } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { filesBelow } from "./files.mjs";
import { escapeHtml, groupsOf, relative, renderDocument } from "./markdown.mjs";

const BUDGET_BYTES = 1_300_000; // of everything in PACKED

const [tree, out, packed, repository = ""] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));

// ---- which documents, and where they are ----

const list = readFileSync(join(tree, "docs/README.md"), "utf8");
const groups = groupsOf(list);
const documents = new Set([
  ...filesBelow(join(tree, "docs")).map((path) => relativePath(tree, path)).filter((path) => path.endsWith(".md")),
  ...readdirSync(tree).filter((name) => name.endsWith(".md")),
  ...groups.flatMap((group) => group.documents.map(({ path }) => path)),
  ...[...list.matchAll(/\]\(\.\.\/([^)#]+\.md)\)/g)].map(([, path]) => path),
]);

/** docs/a/README.md is a/index.html; what is outside docs/ is below tree/. */
function pageOf(document) {
  const path = document.startsWith("docs/") ? document.slice("docs/".length) : "tree/" + document;
  return path.replace(/README\.md$/, "index.html").replace(/\.md$/, ".html");
}

const site = { tree, repository, pages: new Map([...documents].sort().map((each) => [each, pageOf(each)])), files: new Set() };
const rendered = new Map();
for (const document of site.pages.keys()) {
  rendered.set(document, renderDocument(readFileSync(join(tree, document), "utf8"), document, site));
}

// ---- pages ----

function link(from, to, text, isCurrent = false) {
  return `<a href="${escapeHtml(relative(from, to))}"${isCurrent ? ' aria-current="page"' : ""}>${escapeHtml(text)}</a>`;
}

/** The groups, and the documents of the group that has this one. */
function navigation(document) {
  const page = site.pages.get(document);
  return groups.map((group) => {
    const anchor = group.name.toLowerCase().replaceAll(" ", "-");
    const heading = `<a href="${escapeHtml(relative(page, "index.html"))}#${anchor}">${escapeHtml(group.name)}</a>`;
    if (!group.documents.some(({ path }) => path === document)) {
      return `<h2>${heading}</h2>`;
    }
    const entries = group.documents.map(({ path, text }) => {
      // A decision is listed by its number alone.
      const name = /^\d+$/.test(text) ? rendered.get(path).title : text;
      return `<li>${link(page, site.pages.get(path), name, path === document)}</li>`;
    });
    return `<h2>${heading}</h2>\n<ul>\n${entries.join("\n")}\n</ul>`;
  }).join("\n");
}

function contents(headings) {
  const entries = headings.filter(({ depth }) => depth === 2);
  if (entries.length < 3) {
    return "";
  }
  const items = entries.map(({ text, anchor }) => `<li><a href="#${escapeHtml(anchor)}">${escapeHtml(text)}</a></li>`);
  return `<nav class="contents" aria-label="On this page">\n<h2>On this page</h2>\n<ul>\n${items.join("\n")}\n</ul>\n</nav>`;
}

function pageText(document) {
  const page = site.pages.get(document);
  const { title, headings, html } = rendered.get(document);
  const root = posix.relative(posix.dirname(page), "") || ".";
  return `<!doctype html>
<html lang="en" data-root="${root}/">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} - Hearth</title>
<link rel="icon" href="${root}/mark.svg">
<link rel="stylesheet" href="${root}/tokens.css">
<link rel="stylesheet" href="${root}/site.css">
<script src="${root}/site.js"></script>
</head>
<body>
<a class="skip" href="#text">Skip to the text</a>
<header>
<a class="mark" href="${root}/index.html">hearth</a>
<div role="search">
<input type="search" aria-label="Search titles and headings" placeholder="Search titles and headings" autocomplete="off">
<div class="found" aria-live="polite"></div>
</div>
<a class="to-pages" href="#pages">Pages</a>
<button type="button" class="theme" aria-label="Light or dark">◐</button>
</header>
<div class="columns">
<main id="text" tabindex="-1">
${html}</main>
<nav id="pages" aria-label="Pages">
${navigation(document)}
</nav>
${contents(headings)}
</div>
</body>
</html>
`;
}

/** What the search reads: for each page its address, title, and headings with their anchors. */
function searchIndex() {
  const entries = [...site.pages].map(([document, page]) => {
    const { title, headings } = rendered.get(document);
    return [page, title, headings.filter(({ depth }) => depth > 1 && depth < 5).map(({ text, anchor }) => [text, anchor])];
  });
  return JSON.stringify(entries);
}

// ---- files ----

const files = new Map([
  ...[...site.pages].map(([document, page]) => [page, pageText(document)]),
  ["search.json", searchIndex()],
  ...["tokens.css", "site.css", "site.js", "mark.svg"].map((name) => [name, readFileSync(join(here, name))]),
  ...[...site.files].map((path) => [path.slice("docs/".length), readFileSync(join(tree, path))]),
]);

for (const directory of [out, packed]) {
  rmSync(directory, { recursive: true, force: true });
}
for (const [name, content] of files) {
  const [path, target] = [join(out, name), join(packed, name)];
  const bytes = Buffer.from(content);
  mkdirSync(dirname(path), { recursive: true });
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(path, bytes);
  // zopfli would take a twentieth less, and half a minute for all.
  const packedBytes = gzipSync(bytes, { level: 9 });
  const isSmaller = packedBytes.length < 0.9 * bytes.length;
  writeFileSync(isSmaller ? target + ".gz" : target, isSmaller ? packedBytes : bytes);
}

const total = filesBelow(packed).reduce((sum, path) => sum + readFileSync(path).length, 0);
console.log(`documents: ${site.pages.size} pages, ${total} bytes in hearthd, of ${BUDGET_BYTES}`);
if (total > BUDGET_BYTES) {
  console.error("the documents are larger than their budget");
  process.exit(1);
}
