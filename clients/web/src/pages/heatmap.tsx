// Single profiles, or spans, by time and value: the outliers that a line over time hides.
import { computed } from "@preact/signals";
import { askExemplars, askHeat, cellAt, type Cell, type Exemplar, type Heat, type HeatKind, type HeatQuestion } from "../api/heatmap";
import { useAnswer } from "../api/use-answer";
import { pageTexts } from "../app/page-texts";
import { PageLink } from "../app/page-link";
import { chooseType, range, rangeKey, rangeName, selector, span, typeName, useProfileTypes } from "../app/question";
import { language, texts, theme } from "../app/settings";
import { HeatmapCanvas, HeatmapLegend } from "../chart/heatmap-canvas";
import { serviceOf } from "../selector";
import { chooseStep, isRelative } from "../time";
import { formatCount, formatValue } from "../units";
import { change, param, question } from "../url";
import { Empty } from "./empty";
import { labelText } from "./profiles/list-profiles";
import { Failure } from "./notice";

const COLUMNS = 120;
const NARROW_COLUMNS = 48;
const NARROW_PX = 700;
const MAX_EXEMPLARS = 100;
const KINDS: HeatKind[] = ["INDIVIDUAL", "SPAN"];

// With seconds, because a column may be as short as one. A formatter is dear to make, and the table has many times.
const moments = computed(() => new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" }));
const clocks = computed(() => new Intl.DateTimeFormat(language.value, { timeStyle: "medium", hourCycle: "h23" }));

function countOf(heat: Heat, { column, row }: Cell): number {
  return heat.counts[column * (heat.edges.length - 1) + row]!;
}

function valuesOf(heat: Heat, row: number, unit: string): string {
  const [low, high] = [heat.edges[row]!, heat.edges[row + 1]!];
  return low === high ? formatValue(low, unit) : `${formatValue(low, unit)} – ${formatValue(high, unit)}`;
}

function sentence(heat: Heat, cell: Cell, unit: string, kind: HeatKind): string {
  const endMs = heat.endsMs[cell.column]!;
  const times = moments.value.formatRange(endMs - heat.stepMs, endMs);
  return `${times}, ${valuesOf(heat, cell.row, unit)}: ${texts.value.comparing.heat[kind].counted(formatCount(countOf(heat, cell)))}`;
}

// Where a cell lies, in words that still fit when the columns of a later answer begin elsewhere.
function addressOf(heat: Heat, cell: Cell | null): { at: string; value: string } {
  if (!cell) {
    return { at: "", value: "" };
  }
  const [low, high] = [heat.edges[cell.row]!, heat.edges[cell.row + 1]!];
  return { at: String(Math.round(heat.endsMs[cell.column]! - heat.stepMs / 2)), value: String((low + high) / 2) };
}

function ExemplarRow({ exemplar, type, unit }: { exemplar: Exemplar; type: string; unit: string }) {
  const { profileId = "", spanId = "", traceId = "", value = "0", timestamp = "0", labels } = exemplar;
  // The sentence above names the day.
  const time = clocks.value.format(Number(timestamp));
  return (
    <tr>
      <th scope="row">
        <PageLink page="profiles" to={{ ...question(), id: profileId, type }} title={moments.value.format(Number(timestamp))}>
          {time}
        </PageLink>
      </th>
      {spanId !== "" && (
        <td class="code">
          <PageLink page="traces" to={{ ...question(), id: traceId || spanId, span: traceId ? spanId : "", type }}>
            {spanId}
          </PageLink>
        </td>
      )}
      <td class="code cut" title={labelText(labels)}>
        {labelText(labels)}
      </td>
      <td class="number">{formatValue(Number(value), unit)}</td>
    </tr>
  );
}

function Exemplars({ asked, heat, cell, of, unit }: { asked: HeatQuestion; heat: Heat; cell: Cell; of: string; unit: string }) {
  const words = texts.value.comparing;
  const isSpan = asked.kind === "SPAN";
  const count = countOf(heat, cell);
  const found = useAnswer(count > 0 ? `${of} ${cell.column} ${cell.row}` : null, (abort) => askExemplars(asked, heat, cell, abort));
  const shown = (found.value ?? []).slice(0, MAX_EXEMPLARS);
  return (
    <section class="exemplars" aria-busy={found.isLoading}>
      <h2>{words.heat[asked.kind].exemplars}</h2>
      <p class="muted">{sentence(heat, cell, unit, asked.kind)}</p>
      <Failure error={found.error} />
      {count > 0 && found.value && shown.length === 0 && <p class="note">{words.noExemplars}</p>}
      {shown.length > 0 && (
        <table class="narrow">
          <thead>
            <tr>
              <th scope="col">{pageTexts.value.list.one}</th>
              {isSpan && <th scope="col">{words.spansByNames.SPAN}</th>}
              <th scope="col" class="cut">
                {pageTexts.value.list.labels}
              </th>
              <th scope="col" class="number">
                {pageTexts.value.value}
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((exemplar) => (
              <ExemplarRow key={`${exemplar.profileId} ${exemplar.spanId}`} exemplar={exemplar} type={asked.type} unit={unit} />
            ))}
          </tbody>
        </table>
      )}
      {shown.length > 0 && shown.length < count && <p class="muted">{words.someOf(formatCount(shown.length), formatCount(count))}</p>}
    </section>
  );
}

function HeatTable({ heat, unit, kind, onChoose }: { heat: Heat; unit: string; kind: HeatKind; onChoose(cell: Cell): void }) {
  const words = texts.value.comparing;
  const rows = heat.edges.length - 1;
  const cells = Array.from(heat.counts.keys()).filter((i) => heat.counts[i]! > 0);
  return (
    <div class="heat-table" tabIndex={0} role="region" aria-label={words.asTable}>
      <table>
        <thead>
          <tr>
            <th scope="col">{pageTexts.value.time}</th>
            <th scope="col" class="number">
              {pageTexts.value.value}
            </th>
            <th scope="col" class="number">
              {words.heat[kind].name}
            </th>
          </tr>
        </thead>
        <tbody>
          {cells.map((i) => {
            const cell = { column: Math.floor(i / rows), row: i % rows };
            return (
              <tr key={i}>
                <th scope="row">
                  <button type="button" class="plain" onClick={() => onChoose(cell)}>
                    {moments.value.format(heat.endsMs[cell.column]! - heat.stepMs)}
                  </button>
                </th>
                <td class="number">{valuesOf(heat, cell.row, unit)}</td>
                <td class="number">{formatCount(heat.counts[i]!)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function Heatmap() {
  const words = texts.value.comparing;
  const types = useProfileTypes();
  const type = chooseType(types.value ?? []);
  const kind: HeatKind = param("of") === "spans" ? "SPAN" : "INDIVIDUAL";
  const stepS = chooseStep(span.value, innerWidth < NARROW_PX ? NARROW_COLUMNS : COLUMNS);
  // Columns of a range that moves end at whole steps: whoever comes back to a cell a minute later finds the same profiles in it.
  const stepMs = stepS * 1000;
  const startMs = isRelative(range.value) ? Math.floor(span.value.startMs / stepMs) * stepMs : span.value.startMs;
  const asked: HeatQuestion = { type: type?.ID ?? "", selector: selector.value, kind, span: { ...span.value, startMs }, stepS };
  const key = type ? `${rangeKey.value} ${type.ID} ${selector.value} ${kind} ${stepS}` : null;
  // The question stays with its answer: the range of the page may move on meanwhile.
  const answer = useAnswer(key, async (abort) => ({ heat: await askHeat(asked, abort), asked, key: key! }));

  if (types.value?.length === 0) {
    return <Empty />;
  }
  const heat = answer.value?.heat;
  const unit = type?.sampleUnit ?? "";
  const chosen = heat && param("at") !== "" ? cellAt(heat, Number(param("at")), Number(param("value"))) : null;
  const choose = (cell: Cell | null) => heat && change(addressOf(heat, cell));
  const service = serviceOf(selector.value) || texts.value.profile.allServices;
  const isTable = param("table") === "1";
  return (
    <section aria-busy={answer.isLoading}>
      <div class="headline">
        <h1>{type ? texts.value.profile.title(typeName(type), service, rangeName()) : texts.value.loading}</h1>
        {heat && <span class="figure">{words.heat[answer.value!.asked.kind].counted(formatCount(heat.all))}</span>}
        <div class="tabs" role="group" aria-label={words.each}>
          {KINDS.map((each) => (
            <button key={each} type="button" aria-pressed={each === kind} onClick={() => change({ of: each === "SPAN" ? "spans" : "", at: "", value: "" })}>
              {words.heat[each].name}
            </button>
          ))}
        </div>
        <button type="button" aria-pressed={isTable} onClick={() => change({ table: isTable ? "" : "1" })}>
          {words.asTable}
        </button>
      </div>
      <Failure error={types.error ?? answer.error} />
      {heat && heat.all === 0 && <p class="muted">{kind === "SPAN" ? words.noSpanValues : texts.value.profile.noData}</p>}
      {heat && heat.all > 0 && (
        <>
          <HeatmapCanvas
            heat={heat}
            unit={unit}
            theme={theme.value}
            label={words.heatmap}
            hint={words.heatmapHint}
            chosen={chosen}
            sentence={(cell) => sentence(heat, cell, unit, kind)}
            onChoose={choose}
            onRange={(from, to) => change({ from: String(from), to: String(to), at: "", value: "" })}
          />
          <HeatmapLegend most={heat.most} what={words.heat[kind].inACell} />
          {isTable && <HeatTable heat={heat} unit={unit} kind={kind} onChoose={choose} />}
          {chosen && <Exemplars asked={answer.value!.asked} heat={heat} cell={chosen} of={answer.value!.key} unit={unit} />}
        </>
      )}
    </section>
  );
}
