// One function: its cost over a month, its callers and callees, and where it runs.
import { call } from "../../api/connect";
import { askHistory, askSandwich, askTop, wholeSteps, type Measure, type Named, type Sandwich, type Scope } from "../../api/functions";
import { CHART_POINTS } from "../../api/timeline";
import { useAnswer, type Answer } from "../../api/use-answer";
import { chooseType, rangeKey, rangeName, selector, span, typeName, useProfileTypes } from "../../app/question";
import { PageLink } from "../../app/page-link";
import { askingTexts } from "../../app/asking-texts";
import { texts } from "../../app/settings";
import { LineList } from "../../chart/line-list";
import { TimelineChart } from "../../chart/timeline-chart";
import { boundedName, visibleName } from "../../flame/names";
import { serviceOf } from "../../selector";
import { chooseStep, type Span } from "../../time";
import { formatShare, formatValue } from "../../units";
import { address, change, param } from "../../url";
import { CallersAndCallees } from "../callers-callees";
import { Empty } from "../empty";
import { LinesPart, ServicesPart, SpansPart } from "./function-parts";
import "./function-page.css";
import { Failure } from "../notice";
import { ShareCell } from "../share-cell";

const MONTH_MS = 31 * 86_400_000;
const MAX_LINES = 8;
const MAX_CHOICES = 30;
const LONGEST_NAME = 300;
const MEASURES: Measure[] = ["total", "self"];

// A month, or less where the oldest profile is younger; never less than the range of the page.
async function historySpan(abort: AbortSignal): Promise<Span> {
  const { startMs, endMs } = span.value;
  if (param("history") === "range") {
    return { startMs, endMs };
  }
  const stats = await call<{ oldestProfileTime?: string }>("querier.v1.QuerierService/GetProfileStats", {}, abort);
  return { startMs: Math.min(startMs, Math.max(endMs - MONTH_MS, Number(stats.oldestProfileTime ?? 0))), endMs };
}

function History({ scope, name, key: of }: Named) {
  const words = texts.value.comparing;
  const by = param("by");
  const measure = MEASURES.find((each) => each === param("measure")) ?? "total";
  const isRange = param("history") === "range";
  const history = useAnswer(`${of} ${by} ${measure} ${isRange}`, async (abort) => {
    const within = await historySpan(abort);
    const stepS = chooseStep(within, CHART_POINTS);
    const grouping = { stepS, groupBy: by === "" ? [] : [by], limit: MAX_LINES };
    return askHistory({ ...scope, span: wholeSteps(within, stepS) }, name, measure, grouping, abort);
  });
  return (
    <section class="function-history" aria-busy={history.isLoading}>
      <div class="tools">
        <h2>{words.history}</h2>
        <div class="tabs" role="group" aria-label={words.measure}>
          {MEASURES.map((each) => (
            <button key={each} type="button" aria-pressed={each === measure} onClick={() => change({ measure: each === "total" ? "" : each })}>
              {texts.value.profile[each]}
            </button>
          ))}
        </div>
        <div class="tabs" role="group" aria-label={texts.value.range}>
          <button type="button" aria-pressed={!isRange} onClick={() => change({ history: "" })}>
            {words.month}
          </button>
          <button type="button" aria-pressed={isRange} onClick={() => change({ history: "range" })}>
            {rangeName()}
          </button>
        </div>
      </div>
      <Failure error={history.error} />
      <div class="timeline-box">
        {history.value && (
          <TimelineChart
            timeline={history.value}
            label={askingTexts.value.timeline.label}
            onRange={(from, to) => change({ from: String(from), to: String(to) })}
            onReset={() => window.history.back()}
          />
        )}
      </div>
      {history.value && by !== "" && <LineList timeline={history.value} />}
    </section>
  );
}

function whatOf(type: string): string {
  return texts.value.profile.title(type, serviceOf(selector.value) || texts.value.profile.allServices, rangeName());
}

function Headline({ named, type, sandwich }: { named: Named; type: string; sandwich?: Sandwich }) {
  const words = texts.value.comparing;
  const { self = "0", total = "0", whole = "0", unit = "" } = sandwich ?? {};
  return (
    <div class="headline">
      <h1 class="code function-name" title={visibleName(named.name)}>
        {boundedName(named.name, LONGEST_NAME)}
      </h1>
      {sandwich && <span class="figure">{formatShare(Number(total), Number(whole))}</span>}
      {sandwich && <span class="muted">{words.ofWhole(whatOf(type), formatValue(Number(total), unit), formatValue(Number(self), unit))}</span>}
    </div>
  );
}

function Choose({ scope, type, of }: { scope: Scope; type: string; of: string }) {
  const words = texts.value.comparing;
  const text = param("search");
  const top: Answer<Awaited<ReturnType<typeof askTop>>> = useAnswer(`${of} ${text}`, (abort) => askTop(scope, text, MAX_CHOICES, abort));
  const { rows = [], total = "0", unit = "" } = top.value ?? {};
  return (
    <section aria-busy={top.isLoading}>
      <div class="headline">
        <h1>{words.chooseFunction}</h1>
        <input
          type="search"
          aria-label={words.nameContains}
          placeholder={words.nameContains}
          value={text}
          onChange={(event) => change({ search: event.currentTarget.value })}
        />
        <span class="muted">{whatOf(type)}</span>
      </div>
      <Failure error={top.error} />
      {top.value && rows.length === 0 && <p class="muted">{words.noFunction}</p>}
      {rows.length > 0 && (
        <table class="narrow part">
          <thead>
            <tr>
              <th scope="col">{texts.value.profile.function}</th>
              <th scope="col" class="number">
                {texts.value.profile.self}
              </th>
              <th scope="col" class="number">
                {texts.value.profile.total}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.name}>
                <th scope="row">
                  <PageLink class="code" page="function" to={{ ...address.value.params, function: row.name ?? "", search: "" }}>
                    {boundedName(row.name ?? "", LONGEST_NAME)}
                  </PageLink>
                </th>
                <ShareCell value={Number(row.self ?? 0)} total={Number(total)} unit={unit} />
                <ShareCell value={Number(row.total ?? 0)} total={Number(total)} unit={unit} />
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

// Of the callers and the callees.
const ZOOMS: [string, string] = ["zoom", "zoom2"];

export function FunctionPage() {
  const types = useProfileTypes();
  const typeIds = (types.value ?? []).map(({ ID }) => ID);
  const type = chooseType(types.value ?? []);
  const name = param("function");
  const scope = { type: type?.ID ?? "", selector: selector.value, span: span.value };
  const key = `${rangeKey.value} ${scope.type} ${scope.selector} ${name}`;
  const isNamed = type !== undefined && name !== "";
  const selection = { ...scope, ...scope.span, functions: [], without: [] };
  const sandwich = useAnswer(isNamed ? key : null, (abort) => askSandwich(selection, name, abort));

  if (types.value?.length === 0) {
    return <Empty />;
  }
  if (!type) {
    return types.error ? <Failure error={types.error} /> : <h1>{texts.value.loading}</h1>;
  }
  if (name === "") {
    return <Choose scope={scope} type={typeName(type)} of={key} />;
  }
  const named = { scope, name, key };
  const isAbsent = (sandwich.error as { code?: string } | undefined)?.code === "not_found";
  return (
    <section class="function-page">
      <Headline named={named} type={typeName(type)} sandwich={sandwich.error ? undefined : sandwich.value} />
      <History {...named} />
      {isAbsent ? <p class="note">{texts.value.comparing.absent}</p> : <Failure error={sandwich.error} />}
      {!sandwich.error && (
        <>
          <CallersAndCallees name={name} sandwich={sandwich} question={{ selection, key, types: typeIds }} zooms={ZOOMS} />
          <div class="columns">
            <div class="part">
              <ServicesPart {...named} />
              <SpansPart {...named} />
            </div>
            <LinesPart {...named} />
          </div>
        </>
      )}
    </section>
  );
}
