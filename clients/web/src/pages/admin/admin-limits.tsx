// What the tenant uses beside what it may use. A limit of its own takes the place of the server's.
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { takeFocus } from "../../app/focus";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { language } from "../../app/settings";
import { limitsZh } from "../../texts/limits-zh";
import { formatCount, formatValue } from "../../units";
import { change, param } from "../../url";
import type { PartProps } from "./admin";
import { FilterBox, filterText } from "../filter-box";
import { Failure } from "../notice";
import { useSending, type Sending } from "../sending";
import { Rows } from "../rows";

const SERVICE = "hearth.v1.AdminService/";
const AGGREGATIONS = ["AGGREGATION_UNSPECIFIED", "AGGREGATION_SUM", "AGGREGATION_MEAN"];
const UNITS: Record<string, string> = { ingest_bytes: "bytes", query_nanoseconds: "nanoseconds" };

interface Limit {
  name: string;
  value?: string;
  serverValue?: string;
  isOwn?: boolean;
  help?: string;
}

interface Used {
  limit: string;
  used?: string;
  max?: string;
  refused?: string;
  refusedLastMinute?: string;
}

interface Usage {
  limits?: Used[];
  uses?: { name: string; total?: string; lastMinute?: string }[];
  sinceMs?: string;
}

function formatUse(limit: string, value: string): string {
  return limit.endsWith("-bytes") ? formatValue(Number(value), "bytes") : formatCount(Number(value));
}

function UsageTable() {
  const words = pageTexts.value.admin;
  const answer = useAnswer("usage", (abort) => call<Usage>(SERVICE + "Usage", {}, abort));
  const { limits = [], uses = [], sinceMs = "0" } = answer.value ?? {};
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.usage}</h2>
      <Failure error={answer.error} />
      {Number(sinceMs) > 0 && <p class="muted">{words.since(formatTime(Number(sinceMs)))}</p>}
      <Rows shape="narrow" heads={[words.limit, { number: words.used }, { number: words.max }, null, { number: words.refused }, { number: words.lastMinute }]}>
        {limits.map(({ limit, used = "0", max = "0", refused = "0", refusedLastMinute = "0" }) => (
          <tr key={limit}>
            <th scope="row" class="code">
              {limit}
            </th>
            <td class="number">{formatUse(limit, used)}</td>
            <td class="number">{Number(max) > 0 ? formatUse(limit, max) : words.noLimit}</td>
            <td>{Number(max) > 0 && <meter min={0} max={Number(max)} value={Number(used)} aria-hidden="true" />}</td>
            <td class={Number(refused) > 0 ? "number note" : "number"}>{formatCount(Number(refused))}</td>
            <td class={Number(refusedLastMinute) > 0 ? "number note" : "number"}>{formatCount(Number(refusedLastMinute))}</td>
          </tr>
        ))}
      </Rows>
      <table class="narrow below">
        <thead>
          <tr>
            <th scope="col">{words.counted}</th>
            <th scope="col" class="number">
              {words.total}
            </th>
            <th scope="col" class="number">
              {words.lastMinute}
            </th>
          </tr>
        </thead>
        <tbody>
          {uses.map(({ name, total = "0", lastMinute = "0" }) => (
            <tr key={name}>
              <th scope="row">{words.uses[name] ?? name}</th>
              <td class="number">{formatValue(Number(total), UNITS[name] ?? "count")}</td>
              <td class="number">{formatValue(Number(lastMinute), UNITS[name] ?? "count")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

// The server describes its limits in English; undefined: these are the words to show.
function ownWords(name: string): string | undefined {
  return language.value === "zh" ? limitsZh[name] : undefined;
}

interface RowProps {
  limit: Limit;
  mayChange: boolean;
  sending: Sending;
}

function Row({ limit: { name, value, serverValue, isOwn, help }, mayChange, sending }: RowProps) {
  const words = pageTexts.value.admin;
  const set = async (text: string) => {
    if (await sending.send(SERVICE + "SetLimits", { changes: [{ name, value: text }] })) {
      change({ limit: "" });
    }
  };
  const isEdited = mayChange && param("limit") === name;
  const own = ownWords(name);
  return (
    <tr aria-selected={isOwn}>
      <th scope="row" class="limit-name">
        <span class="code">{name}</span>
        {help && (
          <span class="muted" lang={own ? undefined : "en"} title={own && help}>
            {own ?? help}
          </span>
        )}
      </th>
      <td class="number code">
        {isEdited ? (
          <form
            id="limit-form"
            onSubmit={(event) => {
              event.preventDefault();
              void set(String(new FormData(event.currentTarget).get("value")));
            }}
          >
            <input
              name="value"
              class="code short"
              aria-label={name}
              defaultValue={value}
              ref={takeFocus}
              onKeyDown={(event) => event.key === "Escape" && change({ limit: "" })}
            />
          </form>
        ) : (
          <>
            {isOwn && <span class="muted">{words.own} </span>}
            {value}
          </>
        )}
      </td>
      <td class="number code muted">{serverValue}</td>
      {mayChange && (
        <td class="actions">
          {isEdited ? (
            <>
              <button type="submit" form="limit-form" class="primary" disabled={sending.isSending}>
                {words.save}
              </button>
              <button type="button" onClick={() => change({ limit: "" })}>
                {words.leave}
              </button>
            </>
          ) : (
            <button type="button" aria-label={`${words.edit}: ${name}`} onClick={() => change({ limit: name })}>
              {words.edit}
            </button>
          )}
          {isOwn && !isEdited && (
            <button type="button" aria-label={`${words.reset}: ${name}`} onClick={() => void set("default")}>
              {words.reset}
            </button>
          )}
        </td>
      )}
    </tr>
  );
}

function Gauges({ mayChange, sending }: { mayChange: boolean; sending: Sending }) {
  const words = pageTexts.value.admin;
  const answer = useAnswer("tenant settings", (abort) => call<{ gaugeAggregation?: string }>(SERVICE + "GetTenantSettings", {}, abort));
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.gauges}</h2>
      <Failure error={answer.error} />
      <label>
        {words.gaugesHint}{" "}
        <select
          disabled={!mayChange}
          value={answer.value?.gaugeAggregation ?? AGGREGATIONS[0]}
          onChange={(event) => void sending.send(SERVICE + "SetTenantSettings", { gaugeAggregation: event.currentTarget.value })}
        >
          {AGGREGATIONS.map((each) => (
            <option key={each} value={each}>
              {words.aggregations[each]}
            </option>
          ))}
        </select>
      </label>
    </section>
  );
}

export function Limits({ mayChange }: PartProps) {
  const words = pageTexts.value.admin;
  const sending = useSending();
  const answer = useAnswer("limits", (abort) => call<{ limits?: Limit[] }>(SERVICE + "GetLimits", {}, abort));
  const filter = filterText();
  const limits = (answer.value?.limits ?? []).filter(({ name, help = "" }) =>
    [name, help, ownWords(name) ?? ""].some((text) => text.toLowerCase().includes(filter)),
  );
  return (
    <>
      <UsageTable />
      <section aria-busy={answer.isLoading}>
        <h2>{words.allLimits}</h2>
        <p class="muted">{words.limitsHint}</p>
        <Failure error={answer.error ?? sending.error} />
        <FilterBox label={words.filterLimits} />
        {answer.value && limits.length === 0 && <p class="muted">{words.noneMatches}</p>}
        {limits.length > 0 && (
          <div class="rows">
            <table class="narrow">
              <thead>
                <tr>
                  <th scope="col">{words.limit}</th>
                  <th scope="col" class="number">
                    {words.holds}
                  </th>
                  <th scope="col" class="number">
                    {words.servers}
                  </th>
                  {mayChange && <td />}
                </tr>
              </thead>
              <tbody>
                {limits.map((limit) => (
                  <Row key={limit.name} limit={limit} mayChange={mayChange} sending={sending} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <Gauges mayChange={mayChange} sending={sending} />
    </>
  );
}
