// A document as HTML: headings with GitHub's anchors, links between documents as links between pages.
import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { Marked } from "marked";

export function escapeHtml(text) {
  return text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
}

/** The text of inline tokens, without their marks. */
export function textOf(tokens) {
  return tokens.map((token) => (token.tokens ? textOf(token.tokens) : (token.text ?? ""))).join("");
}

/** GitHub's anchor of a heading; `used` counts those of the same document. */
function anchorOf(text, used) {
  const plain = text.toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-");
  const times = used.get(plain) ?? 0;
  used.set(plain, times + 1);
  return times === 0 ? plain : `${plain}-${times}`;
}

/** From one page of the site to another, both by their paths in it. */
export function relative(from, to) {
  return posix.relative(posix.dirname(from), to) || posix.basename(to);
}

/**
 * One document. `site` has the tree's directory, `pages` (page by document, both by path), `files` (what pages show
 * or link, which is filled) and the address of the repository, "" if there is none.
 *
 * Returns its title, headings and HTML. Throws where a link leads nowhere.
 */
export function renderDocument(source, path, site) {
  const page = site.pages.get(path);
  const used = new Map();
  const headings = [];
  const marked = new Marked({ gfm: true });

  // The page or file that a relative link means, as an address from this page; null for what is outside the site.
  const resolve = (href) => {
    const [target, anchor] = href.split("#");
    const there = target === "" ? path : posix.normalize(posix.join(posix.dirname(path), target)).replace(/\/$/, "");
    const suffix = anchor === undefined ? "" : "#" + anchor;
    if (target === "") {
      return suffix;
    }
    if (there.startsWith("..") || !existsSync(join(site.tree, there))) {
      throw new Error(`${path}: the link to ${href} leads nowhere`);
    }
    const isFile = posix.extname(there) !== "" && there.startsWith("docs/");
    if (site.pages.has(there)) {
      return relative(page, site.pages.get(there)) + suffix;
    }
    if (isFile) {
      site.files.add(there);
      return relative(page, there.slice("docs/".length));
    }
    return site.repository === "" ? null : `${site.repository}/${there}${suffix}`;
  };

  marked.use({
    renderer: {
      heading({ tokens, depth }) {
        const text = textOf(tokens);
        const anchor = anchorOf(text, used);
        headings.push({ depth, text, anchor });
        return `<h${depth} id="${escapeHtml(anchor)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, raw, tokens }) {
        const text = this.parser.parseInline(tokens);
        // An address within a sentence is an example, such as that of the reader's own server.
        if (!raw.startsWith("[")) {
          return text;
        }
        if (/^https?:/.test(href)) {
          return `<a href="${escapeHtml(href)}" rel="noreferrer">${text}</a>`;
        }
        const address = resolve(href);
        return address === null ? text : `<a href="${escapeHtml(address)}">${text}</a>`;
      },
      image({ href, text }) {
        return `<img src="${escapeHtml(resolve(href))}" alt="${escapeHtml(text)}" loading="lazy">`;
      },
      // What is wider than the page scrolls by itself, also by keys.
      code({ text }) {
        return `<pre tabindex="0"><code>${escapeHtml(text)}\n</code></pre>\n`;
      },
      html({ text }) {
        return text.replace(/<!--[\s\S]*?-->/g, "").replace(/\b(src|srcset)="([^"]+)"/g, (_, name, href) => `${name}="${escapeHtml(resolve(href))}"`);
      },
    },
  });
  const html = marked
    .parse(source)
    .replaceAll("<table>", '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>')
    .replaceAll("</table>", "</table></div>")
    // A heading without words is no heading to a screen reader.
    .replace(/<th([^>]*)><\/th>/g, "<td$1></td>");
  return { title: headings.find(({ depth }) => depth === 1)?.text ?? path, headings, html };
}

/** The tables of docs/README.md: groups, each with the documents that it lists by their paths. */
export function groupsOf(source) {
  const groups = [];
  const marked = new Marked({ gfm: true });
  const linksOf = (tokens) =>
    tokens.flatMap((token) => (token.type === "link" ? [{ href: token.href, text: textOf(token.tokens) }] : linksOf(token.tokens ?? [])));
  for (const token of marked.lexer(source)) {
    if (token.type === "heading" && token.depth === 2) {
      groups.push({ name: token.text, documents: [] });
    } else if (token.type === "table" && groups.length > 0) {
      const links = token.rows.flatMap(([first]) => linksOf(first.tokens));
      groups.at(-1).documents.push(...links.map(({ href, text }) => ({ path: posix.normalize(posix.join("docs", href)), text })));
    }
  }
  return groups;
}
