// Targets that servers fetch profiles from: which ones answer, and what is wrong with the others.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { formatAgo } from "../../app/ago";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { formatCount, formatDuration, formatValue } from "../../units";
import { FilterBox, filterText } from "../filter-box";
import { Failure } from "../notice";
import { Rows } from "../rows";

const MAX_SHOWN = 500;

interface Target {
  job?: string;
  address?: string;
  path?: string;
  claimed?: boolean;
  scrapedMs?: string;
  tookMs?: string;
  bytes?: string;
  failure?: string;
}

// Those that fail are what somebody opens this page for.
function rank(target: Target): number {
  return target.failure ? 0 : !target.claimed ? 1 : 2;
}

function State({ target }: { target: Target }) {
  const words = pageTexts.value.admin;
  if (target.failure) {
    return <span class="error">{target.failure}</span>;
  }
  return <span class={target.claimed ? "" : "note"}>{target.claimed ? words.scraped : words.notClaimed}</span>;
}

export function ScrapeTargets() {
  const words = pageTexts.value.admin;
  const answer = useAnswer("scrape targets", (abort) => call<{ targets?: Target[] }>("hearth.v1.AdminService/ScrapeTargets", {}, abort));
  const targets = answer.value?.targets ?? [];
  const failing = targets.filter((target) => target.failure).length;
  const filter = filterText();
  const matching = targets
    .filter(({ job = "", address = "", path = "", failure = "" }) => `${job} ${address}${path} ${failure}`.toLowerCase().includes(filter))
    .sort((a, b) => rank(a) - rank(b));
  return (
    <section aria-busy={answer.isLoading}>
      <Failure error={answer.error} />
      {answer.value && targets.length === 0 && <p>{words.noTargets}</p>}
      {targets.length > 0 && (
        <>
          <p class={failing > 0 ? "verdict note" : "verdict"}>{words.targets(formatCount(targets.length), formatCount(failing))}</p>
          <FilterBox label={words.filterTargets} />
        </>
      )}
      {targets.length > 0 && matching.length === 0 && <p class="muted">{words.noneMatches}</p>}
      {matching.length > 0 && (
        <Rows heads={[words.job, words.target, words.lastScrape, { number: words.took }, { number: words.bytes }, words.result]}>
          {matching.slice(0, MAX_SHOWN).map((target) => (
            <tr key={`${target.job} ${target.address} ${target.path}`}>
              <th scope="row">{target.job}</th>
              <td class="code">
                {target.address}
                {target.path}
              </td>
              <td title={formatTime(Number(target.scrapedMs ?? 0))}>
                {Number(target.scrapedMs ?? 0) > 0 ? formatAgo(Number(target.scrapedMs)) : words.never}
              </td>
              <td class="number">{formatDuration(Number(target.tookMs ?? 0))}</td>
              <td class="number">{formatValue(Number(target.bytes ?? 0), "bytes")}</td>
              <td class="wrapped">
                <State target={target} />
              </td>
            </tr>
          ))}
        </Rows>
      )}
      {matching.length > MAX_SHOWN && <p class="note">{words.onlyFirst(formatCount(MAX_SHOWN), formatCount(matching.length))}</p>}
    </section>
  );
}
