// Deletes profiles by selector and range. The number that a preview found is sent along, so that nothing else is deleted
// than what was seen.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { useWatched } from "../../api/use-watched";
import { pageTexts } from "../../app/page-texts";
import { formatTime, rangeKey, rangeName, span } from "../../app/question";
import { hasRole, type Who } from "../../app/who";
import { formatCount } from "../../units";
import { change, param } from "../../url";
import type { PartProps } from "./admin";
import { Failure } from "../notice";
import { Confirm, useSending } from "../sending";
import { Rows } from "../rows";

const SERVICE = "hearth.v1.AdminService/";
// The largest time, which a number of JavaScript does not hold.
const ALL_TIMES = { start: "0", end: "9223372036854775807" };
const LOOK_AGAIN_MS = 10_000;
const LATEST_MS = 8.64e15;

interface Preview {
  series?: string;
  services?: string;
  erasureId?: string;
}

interface Erasure {
  erasureId: string;
  labelSelector?: string;
  requestedBy?: string;
  start?: string;
  end?: string;
  requestedAtMs?: string;
  doneAtMs?: string;
  series?: string;
  rows?: string;
}

function deletedRange(): { start: string; end: string } {
  return param("all") !== ""
    ? ALL_TIMES
    : { start: String(Math.floor(span.value.startMs)), end: String(Math.floor(span.value.endMs)) };
}

function PreviewOf({ wanted, who }: { wanted: string; who: Who }) {
  const words = pageTexts.value.admin;
  const { error, isSending, send } = useSending();
  const key = `${wanted} ${param("all") || rangeKey.value}`;
  const preview = useAnswer(key, (abort) =>
    call<Preview>(SERVICE + "Erase", { labelSelector: wanted, ...deletedRange(), dryRun: true }, abort),
  );
  const series = Number(preview.value?.series ?? 0);
  const range = param("all") !== "" ? words.allTimes : rangeName();
  const erase = async () => {
    const message = {
      labelSelector: wanted,
      ...deletedRange(),
      expectedSeries: String(series),
      requestedBy: [who.name, param("why")].filter((each) => each).join(": "),
    };
    if (await send<Preview>(SERVICE + "Erase", message)) {
      change({ erase: "", why: "" });
    }
  };
  return (
    <div class="warned" aria-busy={preview.isLoading}>
      <Failure error={preview.error ?? error} />
      {preview.value && !preview.error && (
        <>
          <p class="verdict">
            {series === 0 ? words.nothingToDelete : words.wouldDelete(formatCount(series), formatCount(Number(preview.value.services ?? 0)), range)}
          </p>
          <p class="code">{wanted}</p>
          {series > 0 && <p>{words.deletionHint}</p>}
        </>
      )}
      <p class="tabs">
        {series > 0 && !preview.error && (
          <Confirm label={words.deleteProfiles} of={wanted} disabled={isSending || preview.isLoading} onConfirm={() => void erase()} />
        )}
        <button type="button" onClick={() => change({ erase: "" })}>
          {words.leave}
        </button>
      </p>
    </div>
  );
}

interface Erased {
  erasures?: Erasure[];
}

function isRemoving({ erasures = [] }: Erased): boolean {
  return erasures.some(({ doneAtMs = "0" }) => doneAtMs === "0");
}

function Erasures() {
  const words = pageTexts.value.admin;
  const answer = useWatched("erasures", LOOK_AGAIN_MS, isRemoving, (abort) => call<Erased>(SERVICE + "Erasures", {}, abort));
  const erasures = answer.value?.erasures ?? [];
  const range = ({ start = "0", end = "0" }: Erasure) =>
    Number(start) === 0 && Number(end) > LATEST_MS ? words.allTimes : `${formatTime(Number(start))} – ${formatTime(Math.min(Number(end), LATEST_MS))}`;
  return (
    <section>
      <h2>{words.erasures}</h2>
      <Failure error={answer.error} />
      {answer.value && erasures.length === 0 && <p class="muted">{words.noErasures}</p>}
      {erasures.length > 0 && (
        <Rows heads={[words.requested, words.selector, words.range, { number: words.series }, { number: words.removedProfiles }, words.progress, words.requestedBy]}>
          {erasures.map((erasure) => (
            <tr key={erasure.erasureId}>
              <th scope="row">{formatTime(Number(erasure.requestedAtMs ?? 0))}</th>
              <td class="code">{erasure.labelSelector}</td>
              <td>{range(erasure)}</td>
              <td class="number">{formatCount(Number(erasure.series ?? 0))}</td>
              <td class="number">{formatCount(Number(erasure.rows ?? 0))}</td>
              <td>
                {Number(erasure.doneAtMs ?? 0) > 0 ? words.removedAt(formatTime(Number(erasure.doneAtMs))) : <span class="note">{words.hidden}</span>}
              </td>
              <td>{erasure.requestedBy}</td>
            </tr>
          ))}
        </Rows>
      )}
    </section>
  );
}

export function Deletion({ who }: PartProps) {
  const words = pageTexts.value.admin;
  const wanted = param("erase");
  return (
    <>
      {hasRole(who, "editor") && (
        <section>
          <h2>{words.deletion}</h2>
          <form
            class="inline"
            onSubmit={(event) => {
              event.preventDefault();
              const fields = new FormData(event.currentTarget);
              const [erase, all, why] = ["erase", "all", "why"].map((name) => String(fields.get(name) ?? ""));
              change({ erase, all, why });
            }}
          >
            <input
              name="erase"
              required
              class="code wide"
              aria-label={words.selector}
              placeholder={'{service_name="checkout"}'}
              spellcheck={false}
              defaultValue={wanted || param("q")}
            />
            <select name="all" aria-label={words.range}>
              <option value="">{rangeName()}</option>
              <option value="1" selected={param("all") !== ""}>
                {words.allTimes}
              </option>
            </select>
            <input name="why" maxLength={150} class="wide" aria-label={words.why} placeholder={words.why} defaultValue={param("why")} />
            <button type="submit">{words.preview}</button>
          </form>
          {wanted !== "" && <PreviewOf wanted={wanted} who={who} />}
        </section>
      )}
      <Erasures />
    </>
  );
}
