// Pages that show one question in several ways stand side by side at the beginning of the query bar.
import { address, question, shownPage, type Page, type Params } from "../url";
import { PageLink } from "./page-link";
import { texts } from "./settings";

interface Family {
  pages: Page[];
  // What one of them hands to the next.
  params(): Params;
}

const FAMILIES: Family[] = [
  { pages: ["diff", "compare"], params: () => ({ ...address.value.params, zoom: "", zoom2: "", unlinked: "" }) },
  { pages: ["profile", "heatmap"], params: question },
];

export function PageTabs() {
  const here = shownPage.value;
  const family = FAMILIES.find(({ pages }) => pages.includes(here));
  if (!family) {
    return null;
  }
  const to = family.params();
  return (
    <nav class="page-tabs" aria-label={texts.value.comparing.sameQuestion}>
      {family.pages.map((page) => (
        <PageLink key={page} page={page} to={to} aria-current={page === here ? "page" : undefined}>
          {texts.value.pages[page]}
        </PageLink>
      ))}
    </nav>
  );
}
