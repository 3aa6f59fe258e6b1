// A link within the page: an address for the browser's own menu, and no reload for a plain click.
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
