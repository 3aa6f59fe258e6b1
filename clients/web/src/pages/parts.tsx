// The parts of a page as tabs: the address says which one is shown, and back returns to the one before.
import { PageLink } from "../app/page-link";
import { param, question, shownPage } from "../url";
import "./parts.css";

interface Props {
  // Texts by the names that stand in the address. The first one is shown without a name.
  parts: [string, string][];
  label: string;
}

export function shownPart(names: string[]): string {
  return names.find((name) => name === param("part")) ?? names[0];
}

export function Parts({ parts, label }: Props) {
  const names = parts.map(([name]) => name);
  const shown = shownPart(names);
  return (
    <nav class="parts" aria-label={label}>
      {parts.map(([name, text]) => (
        <PageLink
          key={name}
          page={shownPage.value}
          to={{ ...question(), part: name === names[0] ? "" : name }}
          isCurrent={name === shown}
        >
          {text}
        </PageLink>
      ))}
    </nav>
  );
}
