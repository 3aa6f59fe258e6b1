// No profiles in the range: when there were some, and how to send one, with this server's address filled in.
import { useEffect, useState } from "preact/hooks";
import { useAnswer } from "../api/use-answer";
import { formatAgo } from "../app/ago";
import { PageLink } from "../app/page-link";
import { pageTexts } from "../app/page-texts";
import { texts } from "../app/settings";
import { hasRole, isAnonymous, useWho, type Who } from "../app/who";
import { formatSelector } from "../selector";
import { snippets } from "./snippets";
import { change, param, type Params } from "../url";
import { askApplications, type Application } from "./admin/admin-applications";
import { CopyButton } from "./copied-text";
import { likelyTenant } from "./admin/grant-fields";
import { Failure } from "./notice";
import { useSending } from "./sending";

const LOOK_AGAIN_MS = 5000;
const BEFORE_MS = 30 * 60_000;
const AFTER_MS = 5 * 60_000;
const FIRST = "hearth record";

function seenMs(application: Application): number {
  return Number(application.lastSeenMs ?? 0);
}

function latest(applications: Application[]): Application | undefined {
  return applications.reduce<Application | undefined>((last, each) => (seenMs(each) > (last ? seenMs(last) : 0) ? each : last), undefined);
}

// The profile page of a service around the time at which it was seen.
export function aroundLast(application: Application): Params {
  const q = formatSelector([{ name: "service_name", op: "=", value: application.name }]);
  const at = seenMs(application);
  return { q, from: String(at - BEFORE_MS), to: String(at + AFTER_MS) };
}

// The services now, and one that has sent a profile since the page was opened.
function useArrival(): { applications?: Application[]; arrived?: Application; error?: Error } {
  const [tick, setTick] = useState(0);
  const [first, setFirst] = useState<number>();
  const { value, error, isLoading } = useAnswer(`applications ${tick}`, askApplications);
  // It stays until the next answer: a screen reader would read it out again each time.
  const [failure, setFailure] = useState<Error>();
  useEffect(() => {
    if (!isLoading) {
      setFailure(error);
    }
  }, [isLoading, error]);
  useEffect(() => {
    const timer = setInterval(() => setTick((last) => last + 1), LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  const last = value && latest(value);
  useEffect(() => {
    if (value && first === undefined) {
      setFirst(last ? seenMs(last) : 0);
    }
  }, [value]);
  return { applications: value, error: failure, arrived: last && first !== undefined && seenMs(last) > first ? last : undefined };
}

function TokenHint({ who, onToken }: { who: Who; onToken(token: string): void }) {
  const words = pageTexts.value.explore;
  const { error, isSending, send } = useSending();
  const create = async () => {
    const grants = [{ tenant: likelyTenant(who), role: "ingest" }];
    const made = await send<{ token: string }>("hearth.v1.AccessService/CreateToken", { name: "my-service", grants });
    if (made) {
      onToken(made.token);
    }
  };
  return (
    <>
      <p class="note">
        {words.needsToken}{" "}
        {hasRole(who, "admin") && (
          <button type="button" disabled={isSending} onClick={() => void create()}>
            {words.makeToken}
          </button>
        )}
      </p>
      <Failure error={error} />
    </>
  );
}

function Snippets({ who }: { who?: Who }) {
  const words = pageTexts.value.explore;
  const [token, setToken] = useState("");
  const needsToken = who !== undefined && !isAnonymous(who);
  const all = snippets({ origin: location.origin, host: location.host, token: token || (needsToken ? "TOKEN" : "") });
  const name = param("with") in all ? param("with") : FIRST;
  const note = name === "Datadog" && needsToken ? words.datadogToken : words.notes[name];
  return (
    <>
      <div class="tabs" role="group">
        {Object.keys(all).map((each) => (
          <button key={each} type="button" aria-pressed={each === name} onClick={() => change({ with: each === FIRST ? "" : each })}>
            {each}
          </button>
        ))}
      </div>
      <pre class="code snippet" tabIndex={0}>
        {all[name]}
      </pre>
      <p>
        <CopyButton key={name} text={all[name]} isPrimary />
      </p>
      {note && <p class="muted">{note}</p>}
      {who && needsToken && token === "" && <TokenHint who={who} onToken={setToken} />}
      {token !== "" && <p class="muted">{words.tokenMade}</p>}
    </>
  );
}

export function Empty() {
  const words = pageTexts.value.explore;
  const who = useWho().value;
  const { applications, arrived, error } = useArrival();
  const last = applications && latest(applications);
  return (
    <section class="sheet">
      <h1>{last || !applications ? texts.value.empty.title : words.noneYet}</h1>
      <p role="status">
        {arrived && (
          <>
            <strong>{words.received(arrived.name)}</strong>{" "}
            <PageLink page="profile" to={{ ...aroundLast(arrived), from: "now-1h", to: "now" }}>
              {words.open}
            </PageLink>
          </>
        )}
        {!arrived && last && (
          <>
            {words.emptyRange(last.name, formatAgo(seenMs(last)))}{" "}
            <PageLink page="profile" to={aroundLast(last)}>
              {words.showThen}
            </PageLink>
          </>
        )}
        {!arrived && !last && applications && !error && words.waiting}
      </p>
      <Failure error={error} />
      <p>{last ? words.sendMore : words.sendFirst}</p>
      <Snippets who={who} />
    </section>
  );
}
