// Narrows a list that is on the page already, by text that stands in the address.
import { amend, param } from "../url";

export function filterText(): string {
  return param("filter").toLowerCase();
}

export function FilterBox({ label }: { label: string }) {
  return (
    <input
      type="search"
      class="wide"
      aria-label={label}
      placeholder={label}
      value={param("filter")}
      onInput={(event) => amend({ filter: event.currentTarget.value })}
    />
  );
}
