// Links from a task to its results on other pages.
import { directingTexts } from "../../app/directing-texts";
import { PageLink } from "../../app/page-link";
import { linksOf, type LinkedTask } from "./task-places";

export function TaskLinks({ task }: { task: LinkedTask }) {
  const words = directingTexts.value.links;
  return (
    <span class="links">
      {linksOf(task).map(({ name, page, params }) => (
        <PageLink key={name} page={page} to={params}>
          {words[name]}
        </PageLink>
      ))}
    </span>
  );
}
