// A link within the page. It has an address for the browser's own menu, and a plain click does not reload the page.
import type { ComponentChildren } from "preact";
import { formatAddress, go, type Page, type Params } from "../url";

export function PageLink({ page, params, children }: { page: Page; params: Params; children: ComponentChildren }) {
  return (
    <a
      href={formatAddress(page, params)}
      onClick={(event) => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
          event.preventDefault();
          go(page, params);
        }
      }}
    >
      {children}
    </a>
  );
}
