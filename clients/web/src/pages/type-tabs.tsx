// The profile types of what is opened, each with its total; the one that is shown stands in the address.
import { pageTexts } from "../app/page-texts";
import { partsOfType } from "../app/question";
import { formatValue } from "../units";
import { change } from "../url";

export interface TypeTotal {
  profileType: string;
  total?: string;
}

export function TypeTabs({ types, chosen }: { types: TypeTotal[]; chosen?: TypeTotal }) {
  return (
    <div class="tabs" role="group" aria-label={pageTexts.value.profileType}>
      {types.map(({ profileType, total }) => {
        const { name, unit } = partsOfType(profileType);
        return (
          <button
            key={profileType}
            type="button"
            aria-pressed={profileType === chosen?.profileType}
            onClick={() => change({ type: profileType, zoom: "" })}
          >
            {name} <span class="muted">{formatValue(Number(total ?? 0), unit)}</span>
          </button>
        );
      })}
    </div>
  );
}
