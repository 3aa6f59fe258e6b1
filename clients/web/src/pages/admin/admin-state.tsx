// Whether the server is ready, what its background work is behind with, what its database could do better.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { Said } from "../../app/said";
import { formatCount, formatDuration } from "../../units";
import { Failure } from "../notice";
import { useStatus } from "../status";

interface Ready {
  ready?: boolean;
  degraded?: boolean;
  reasons?: string[];
}

interface Check {
  name: string;
  verdict?: string;
  found?: string;
  advice?: string;
}

// 503 is an answer, too: it has the reasons.
async function askReady(abort: AbortSignal): Promise<Ready> {
  const response = await fetch("/ready", { headers: { Accept: "application/json" }, signal: abort });
  return (await response.json()) as Ready;
}

function Readiness() {
  const words = pageTexts.value.admin;
  const answer = useAnswer("ready", askReady);
  const { ready, degraded, reasons = [] } = answer.value ?? {};
  return (
    <section aria-busy={answer.isLoading}>
      <Failure error={answer.error} />
      {answer.value && (
        <p class={ready && !degraded ? "verdict" : "verdict note"}>
          {!ready ? words.notReady : degraded ? words.degraded : words.ready}
        </p>
      )}
      {reasons.map((reason) => (
        <p key={reason}>
          <Said text={reason} />
        </p>
      ))}
    </section>
  );
}

function Work() {
  const words = pageTexts.value.admin;
  const answer = useStatus();
  const status = answer.value;
  const [lagMs, late, tombstones, oldestMs] = [status?.lagMs, status?.lateRows, status?.tombstones, status?.oldestProfileMs].map(
    (text) => Number(text ?? 0),
  );
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.work}</h2>
      <Failure error={answer.error} />
      {status && (
        <ul class="plain-list">
          <li class={status.hasBuilder ? "" : "note"}>
            {!status.hasBuilder ? words.noBuilder : status.builderHost ? words.builder(status.builderHost) : words.someBuilder}
          </li>
          <li class={lagMs > 0 ? "note" : ""}>{lagMs > 0 ? words.lag(formatDuration(lagMs)) : words.noLag}</li>
          {late > 0 && <li>{words.late(formatCount(late))}</li>}
          {tombstones > 0 && <li>{words.tombstones(formatCount(tombstones))}</li>}
          {oldestMs > 0 && <li>{words.oldest(formatTime(oldestMs))}</li>}
          {status.restricted && <li>{words.restricted}</li>}
        </ul>
      )}
    </section>
  );
}

function Checks() {
  const words = pageTexts.value.admin;
  const answer = useAnswer("doctor", (abort) => call<{ checks?: Check[] }>("hearth.v1.AdminService/Doctor", {}, abort));
  const checks = answer.value?.checks ?? [];
  const fine = checks.filter((check) => check.verdict === "VERDICT_OK");
  const others = checks.filter((check) => check.verdict !== "VERDICT_OK");
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.checks}</h2>
      <Failure error={answer.error} />
      <ul class="plain-list">
        {others.map((check) => (
          <li key={check.name}>
            <p>
              <strong class={check.verdict === "VERDICT_WRONG" ? "error" : "note"}>
                {check.verdict === "VERDICT_WRONG" ? words.wrong : words.advice}
              </strong>{" "}
              <span class="code">{check.name}</span>: {check.found}
            </p>
            <p>{check.advice}</p>
          </li>
        ))}
      </ul>
      {fine.length > 0 && (
        <details>
          <summary>{words.fine(formatCount(fine.length))}</summary>
          <table class="narrow">
            <tbody>
              {fine.map((check) => (
                <tr key={check.name}>
                  <th scope="row" class="code">
                    {check.name}
                  </th>
                  <td>{check.found}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
    </section>
  );
}

export function AdminState() {
  return (
    <>
      <Readiness />
      <div class="columns">
        <Work />
        <Checks />
      </div>
    </>
  );
}
