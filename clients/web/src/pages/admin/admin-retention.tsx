// How long data is kept, and what takes the disk.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { takeFocus } from "../../app/focus";
import { pageTexts } from "../../app/page-texts";
import { formatCount, formatDuration, formatValue } from "../../units";
import { amend, change, param } from "../../url";
import type { PartProps } from "./admin";
import { DiskByService } from "./service-disk";
import { Failure } from "../notice";
import { Rows } from "../rows";
import { Confirm, useSending, type Sending } from "../sending";
import { ShareCell } from "../share-cell";
import { useStatus } from "../status";

const SERVICE = "hearth.v1.AdminService/";
const DAY_MS = 86_400_000;
const TABLES_SHOWN = 12;

// The option's name, and its field in the answer.
const KEPT: [string, keyof Kept][] = [
  ["retain-raw", "profilesMs"],
  ["retain-10m", "roll10mMs"],
  ["retain-1h", "roll1hMs"],
  ["retain-1d", "roll1dMs"],
];

interface Kept {
  profilesMs?: string;
  roll10mMs?: string;
  roll1hMs?: string;
  roll1dMs?: string;
}

interface RowProps {
  name: string;
  keptMs: number;
  mayChange: boolean;
  sending: Sending;
}

function Row({ name, keptMs, mayChange, sending }: RowProps) {
  const words = pageTexts.value.admin;
  const isEdited = mayChange && param("retain") === name;
  // Days that are typed; empty: for ever. What is shorter than now deletes data.
  const typed = param("days");
  const wantedMs = typed === "" ? 0 : Number(typed) * DAY_MS;
  const isShorter = wantedMs > 0 && (keptMs === 0 || wantedMs < keptMs);
  const set = async (value: object) => {
    if (await sending.send(SERVICE + "SetRetention", { name, ...value })) {
      change({ retain: "", days: "" });
    }
  };
  const save = () => void set({ durationMs: String(Math.round(wantedMs)) });
  return (
    <tr>
      <th scope="row">
        {words.kept[name]}
        <div class="muted code">{name}</div>
      </th>
      <td class="number">
        {isEdited ? (
          <input
            type="number"
            class="short"
            min={0.01}
            step="any"
            aria-label={words.days}
            placeholder={words.forEver}
            value={typed}
            ref={takeFocus}
            onInput={(event) => amend({ days: event.currentTarget.value })}
            onKeyDown={(event) => event.key === "Escape" && change({ retain: "", days: "" })}
          />
        ) : keptMs === 0 ? (
          words.forEver
        ) : (
          formatDuration(keptMs)
        )}
        {isEdited && ` ${words.days}`}
      </td>
      {mayChange && (
        <td class="actions">
          {isEdited && isShorter && <Confirm label={words.shorten} really={words.deletesOlder} of={words.kept[name]} onConfirm={save} />}
          {isEdited && !isShorter && (
            <button type="button" class="primary" disabled={sending.isSending} onClick={save}>
              {words.save}
            </button>
          )}
          {isEdited && (
            <button type="button" onClick={() => change({ retain: "", days: "" })}>
              {words.leave}
            </button>
          )}
          {!isEdited && (
            <button
              type="button"
              aria-label={`${words.edit}: ${words.kept[name]}`}
              onClick={() => change({ retain: name, days: keptMs === 0 ? "" : String(keptMs / DAY_MS) })}
            >
              {words.edit}
            </button>
          )}
          {!isEdited && <Confirm label={words.reset} really={words.resetReally} of={words.kept[name]} onConfirm={() => void set({ reset: true })} />}
        </td>
      )}
    </tr>
  );
}

function Disk() {
  const words = pageTexts.value.admin;
  const answer = useStatus();
  const tables = [...(answer.value?.tables ?? [])].sort((a, b) => Number(b.bytes ?? 0) - Number(a.bytes ?? 0));
  const sum = (of: typeof tables) => of.reduce((all, each) => all + Number(each.bytes ?? 0), 0);
  const rest = tables.slice(TABLES_SHOWN);
  const whole = sum(tables);
  if (answer.value?.restricted) {
    return null;
  }
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.disk(formatValue(whole, "bytes"))}</h2>
      <p class="muted">{words.diskHint}</p>
      <Failure error={answer.error} />
      <Rows shape="narrow" heads={[words.table, { number: words.bytes }]}>
        {tables.slice(0, TABLES_SHOWN).map(({ table, bytes = "0" }) => (
          <tr key={table}>
            <th scope="row" class="code">
              {table}
            </th>
            <ShareCell value={Number(bytes)} total={whole} unit="bytes" />
          </tr>
        ))}
        {rest.length > 0 && (
          <tr>
            <th scope="row" class="muted">
              {words.otherTables(formatCount(rest.length))}
            </th>
            <ShareCell value={sum(rest)} total={whole} unit="bytes" />
          </tr>
        )}
      </Rows>
    </section>
  );
}

export function Retention({ mayChange }: PartProps) {
  const words = pageTexts.value.admin;
  const answer = useAnswer("retention", (abort) => call<Kept>(SERVICE + "GetRetention", {}, abort));
  const sending = useSending();
  return (
    <>
      <div class="columns">
        <section aria-busy={answer.isLoading}>
          <h2>{words.retention}</h2>
          <p class="muted">{words.retentionHint}</p>
          <Failure error={answer.error ?? sending.error} />
          {answer.value && (
            <Rows shape="narrow" heads={[words.data, { number: words.keptFor }, ...(mayChange ? [null] : [])]}>
              {KEPT.map(([name, field]) => (
                <Row key={name} name={name} keptMs={Number(answer.value?.[field] ?? 0)} mayChange={mayChange} sending={sending} />
              ))}
            </Rows>
          )}
        </section>
        <Disk />
      </div>
      <DiskByService />
    </>
  );
}
