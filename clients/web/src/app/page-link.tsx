// A link to a page of ours. A click changes the address; with a key held the browser opens a tab or a window of its own.
import type { JSX } from "preact";
import { formatAddress, go, type Page, type Params } from "../url";

type Props = JSX.AnchorHTMLAttributes<HTMLAnchorElement> & {
  page: Page;
  to: Params;
  label?: string;
  // Whether it leads to what is shown.
  isCurrent?: boolean;
};

export function PageLink({ page, to, label, isCurrent, ...rest }: Props) {
  return (
    <a
      aria-label={label}
      aria-current={isCurrent ? "page" : undefined}
      {...rest}
      href={formatAddress(page, to)}
      onClick={(event) => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
          event.preventDefault();
          go(page, to);
        }
      }}
    />
  );
}
