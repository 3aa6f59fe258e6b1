// The way through a long list whose place stands in the address.
import { pageTexts } from "../app/page-texts";
import { change, param } from "../url";

export function Pager({ next }: { next?: string }) {
  const words = pageTexts.value;
  return (
    <p class="tabs">
      {param("page") !== "" && (
        <button type="button" onClick={() => change({ page: "" })}>
          {words.first}
        </button>
      )}
      {next && (
        <button type="button" onClick={() => change({ page: next })}>
          {words.more}
        </button>
      )}
    </p>
  );
}
