// One upload: what it measured, where it came from, its stacks.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { formatTime, partsOfType } from "../../app/question";
import { formatCount, formatDuration, formatValue } from "../../units";
import { change, param } from "../../url";
import type { ListedProfile } from "./list-profiles";
import { MergedFlame } from "../merged";
import { Failure } from "../notice";
import { TypeTabs, type TypeTotal } from "../type-tabs";

interface Got {
  profile?: ListedProfile;
  types?: TypeTotal[];
  labelSelector?: string;
  start?: string;
  end?: string;
  originals?: { name?: string; sizeBytes?: string }[];
  clientTags?: { name: string; value?: string }[];
}

function Facts({ title, facts }: { title: string; facts: [string, string][] }) {
  if (facts.length === 0) {
    return null;
  }
  return (
    <section class="facts">
      <h2>{title}</h2>
      <dl class="keys">
        {facts.map(([name, value]) => (
          <>
            <dt class="muted">{name}</dt>
            <dd class="code">{value}</dd>
          </>
        ))}
      </dl>
    </section>
  );
}

export function OneProfile({ id }: { id: string }) {
  const words = pageTexts.value;
  const got = useAnswer(id, (abort) => call<Got>("hearth.v1.ProfileService/GetProfile", { id }, abort));
  const { profile, types = [], labelSelector = "{}", start = "0", end = "0", originals = [], clientTags = [] } = got.value ?? {};
  const type = types.find((each) => each.profileType === param("type")) ?? types[0];

  return (
    <section aria-busy={got.isLoading}>
      <div class="headline">
        <h1>
          {profile ? words.list.oneOf(profile.service ?? "", formatTime(Number(profile.timeNs ?? 0) / 1e6)) : words.list.one}
        </h1>
        {type && <span class="figure">{formatValue(Number(type.total ?? 0), partsOfType(type.profileType).unit)}</span>}
        {profile?.durationNs && <span class="muted">{formatDuration(Number(profile.durationNs) / 1e6)}</span>}
        <button type="button" onClick={() => change({ id: "", zoom: "", search: "" })}>
          {words.back}
        </button>
      </div>
      <Failure error={got.error} />
      <TypeTabs types={types} chosen={type} />
      {type && (
        <MergedFlame
          types={types.map(({ profileType }) => profileType)}
          selection={{
            type: type.profileType,
            selector: labelSelector,
            startMs: Number(start),
            endMs: Number(end),
            functions: [],
            without: [],
            profileIds: [id],
          }}
        />
      )}
      <div class="columns">
        <Facts title={words.list.labels} facts={(profile?.labels ?? []).map(({ name, value = "" }) => [name, value])} />
        <Facts title={words.list.client} facts={clientTags.map(({ name, value = "" }) => [name, value])} />
        <Facts
          title={words.list.originals}
          facts={originals.map(({ name, sizeBytes }, i) => [name || formatCount(i + 1), formatValue(Number(sizeBytes ?? 0), "bytes")])}
        />
      </div>
    </section>
  );
}
