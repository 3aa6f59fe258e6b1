// One question in full: cost over time, flame graph, table of functions, callers and callees.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { encodeMerge, type Selection } from "../api/encode";
import { askTimeline, formatHeight } from "../api/timeline";
import { useAnswer } from "../api/use-answer";
import { chooseType, formatTime, rangeKey, rangeName, selector, span, typeName, useProfileTypes, type ProfileType } from "../app/question";
import { flameTexts, texts, theme } from "../app/settings";
import { lineColour, lineName, TimelineChart } from "../chart/timeline-chart";
import type { Palette } from "../flame/colours";
import { FlameGraph, type FlameExports, type FlameView } from "../flame/FlameGraph";
import { functionsOf } from "../flame/functions";
import { loadMerge } from "../flame/load";
import { packageOf } from "../flame/names";
import { sandwichOf } from "../flame/sandwich";
import type { MenuRequest } from "../flame/stage";
import type { Transform, TransformKind } from "../flame/transforms";
import { ancestorsOf, nameOf, type FlameTree } from "../flame/tree";
import { serviceOf } from "../selector";
import { chooseStep } from "../time";
import { formatValue } from "../units";
import { change, formatList, go, param, parseList, question } from "../url";
import { Actions } from "./actions";
import { zoomOfAddress } from "./address-flame";
import { Empty } from "./empty";
import { goToFunction } from "./function-parts";
import { FunctionTable } from "./function-table";
import { Menu, type MenuItem } from "./menu";
import { Failure, Notes } from "./notice";

const MAX_NODES = 16384;
const CHART_POINTS = 240;
const MAX_LINES = 8;
// Longer ranges are read from sums, which name no profiles.
const EXEMPLARS_MS = 6 * 3_600_000;
const VIEWS = ["flame", "table", "both", "sandwich"] as const;
const PALETTES: Palette[] = ["package", "kind", "self"];
const KINDS: TransformKind[] = ["focus", "hide", "recursion", "module"];

function listParam(name: string): string[] {
  return parseList(param(name));
}

function add(name: string, entry: string): void {
  const entries = listParam(name);
  if (!entries.includes(entry)) {
    change({ [name]: formatList([...entries, entry]), zoom: "" });
  }
}

function readTransforms(): Transform[] {
  return listParam("transforms").flatMap((entry) => {
    const kind = KINDS.find((each) => entry.startsWith(each + " "));
    return kind ? [{ kind, name: entry.slice(kind.length + 1) }] : [];
  });
}

function readView(): FlameView {
  return {
    zoom: zoomOfAddress(),
    search: param("search"),
    flip: param("flip") === "1",
    transforms: readTransforms(),
  };
}

function writeView(view: FlameView): void {
  change({
    zoom: view.zoom.join("."),
    search: view.search,
    flip: view.flip ? "1" : "",
    transforms: formatList(view.transforms.map(({ kind, name }) => `${kind} ${name}`)),
  });
}

function addTransform(kind: TransformKind, name: string): void {
  const view = readView();
  writeView({ ...view, zoom: [], transforms: [...view.transforms, { kind, name }] });
}

// Root first, without the root itself.
function stackOf({ tree, node }: MenuRequest): string {
  return ancestorsOf(tree, node).slice(1).map((each) => nameOf(tree, each)).join("\n");
}

function menuItems(request: MenuRequest): MenuItem[] {
  const words = texts.value.menu;
  const { name } = request;
  const copy = (text: string) => void navigator.clipboard.writeText(text);
  return [
    { name: words.focus, run: () => addTransform("focus", name) },
    { name: words.hide, run: () => addTransform("hide", name) },
    { name: words.recursion, run: () => addTransform("recursion", name) },
    { name: words.module, run: () => addTransform("module", packageOf(name)) },
    { name: words.sandwich, run: () => change({ view: "sandwich", function: name }) },
    { name: texts.value.comparing.showHistory, run: () => goToFunction(name) },
    { name: words.with, run: () => add("with", name) },
    { name: words.without, run: () => add("without", name) },
    { name: words.copyName, run: () => copy(name) },
    { name: words.copyStack, run: () => copy(stackOf(request)) },
  ];
}

function Timeline({ type, selection }: { type: ProfileType; selection: Selection }) {
  const by = param("by");
  const timeline = useAnswer(`${rangeKey.value} ${JSON.stringify(selection)} ${by}`, (abort) =>
    askTimeline(
      {
        type: type.ID,
        selector: selection.selector,
        span: span.value,
        stepS: chooseStep(span.value, CHART_POINTS),
        groupBy: by === "" ? [] : [by],
        limit: MAX_LINES,
        functions: selection.functions,
        without: selection.without,
        exemplars: by === "" && span.value.endMs - span.value.startMs <= EXEMPLARS_MS,
      },
      abort,
    ),
  );
  const shown = timeline.value;
  return (
    <div class="timeline-box" aria-busy={timeline.isLoading}>
      <Failure error={timeline.error} />
      {shown && (
        <>
          <TimelineChart
            timeline={shown}
            theme={theme.value}
            label={texts.value.profile.timeline}
            onRange={(from, to) => change({ from: String(from), to: String(to) })}
            onReset={() => history.back()}
            exemplarTitle={({ ms, value }) => texts.value.comparing.exemplar(formatTime(ms), formatValue(value, type.sampleUnit))}
            onExemplar={({ profileId }) => go("profiles", { ...question(), id: profileId, type: type.ID })}
          />
          {by !== "" && (
            <ul class="lines">
              {shown.lines.map((line, i) => (
                <li key={lineName(line.labels)}>
                  <svg width="10" height="10" aria-hidden="true">
                    <rect width="10" height="10" fill={lineColour(i)} />
                  </svg>{" "}
                  {lineName(line.labels) || "—"} <span class="number">{formatHeight(line.mean, shown.unit)}</span>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </div>
  );
}

function StackChips() {
  const words = texts.value.profile;
  const chips = (["with", "without"] as const).flatMap((list) =>
    listParam(list).map((name) => ({ list, name, text: list === "with" ? words.containing(name) : words.lacking(name) })),
  );
  return (
    <>
      {chips.map(({ list, name, text }) => (
        <span class="chip" key={list + name}>
          <span class="code">{text}</span>
          <button
            type="button"
            aria-label={texts.value.removeMatcher(text)}
            onClick={() => change({ [list]: formatList(listParam(list).filter((each) => each !== name)), zoom: "" })}
          >
            ✕
          </button>
        </span>
      ))}
    </>
  );
}

function SandwichView({ tree, unit }: { tree: FlameTree; unit: string }) {
  const name = param("function");
  const words = texts.value.profile;
  const sandwich = useMemo(() => (name === "" ? null : sandwichOf(tree, name)), [tree, name]);
  const [views, setViews] = useState<FlameView[]>([]);
  useEffect(() => setViews([]), [name]);
  if (!sandwich) {
    return <p class="muted">{words.chooseFunction}</p>;
  }
  const none: FlameView = { zoom: [], search: "", flip: false, transforms: [] };
  return (
    <div class="sandwich">
      {[sandwich.callers, sandwich.callees].map((part, i) => (
        <div key={i}>
          <h2>{i === 0 ? words.callers(name) : words.callees(name)}</h2>
          <FlameGraph
            tree={part}
            unit={unit}
            view={views[i] ?? none}
            palette="package"
            texts={flameTexts.value}
            onView={(view) => setViews((old) => (i === 0 ? [view, old[1]] : [old[0], view]))}
          />
        </div>
      ))}
    </div>
  );
}

function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const view = VIEWS[Number(event.key) - 1];
  if (view) {
    change({ view });
  } else if (event.key === "i") {
    change({ flip: param("flip") === "1" ? "" : "1" });
  } else if (event.key === "f") {
    event.preventDefault();
    document.querySelector<HTMLInputElement>("#search")?.focus();
  }
}

export function Profile() {
  const words = texts.value.profile;
  const types = useProfileTypes();
  const type = chooseType(types.value ?? []);
  const [menu, setMenu] = useState<MenuRequest | null>(null);
  const exports = useRef<FlameExports | null>(null);

  useEffect(() => {
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);

  const selection: Selection = {
    type: type?.ID ?? param("type"),
    selector: selector.value,
    startMs: span.value.startMs,
    endMs: span.value.endMs,
    functions: listParam("with"),
    without: listParam("without"),
  };
  const { startMs: _start, endMs: _end, ...what } = selection;
  const key = selection.type === "" ? null : `${rangeKey.value} ${JSON.stringify(what)}`;
  const merged = useAnswer(key, (abort) => loadMerge(encodeMerge(selection, MAX_NODES), abort));
  const tree = merged.value?.tree;
  const unit = merged.value?.unit ?? "";
  const functions = useMemo(() => (tree ? functionsOf(tree) : []), [tree]);

  if (types.value?.length === 0) {
    return <Empty />;
  }
  const view = VIEWS.find((each) => each === param("view")) ?? "both";
  const palette = PALETTES.find((each) => each === param("palette")) ?? "package";
  const service = serviceOf(selector.value) || words.allServices;
  const total = tree ? tree.total[0] : 0;

  return (
    <section class="profile" aria-busy={merged.isLoading}>
      <div class="headline">
        <h1>{type ? words.title(typeName(type), service, rangeName()) : texts.value.loading}</h1>
        {tree && <span class="figure">{formatValue(total, unit)}</span>}
        <StackChips />
      </div>
      <Failure error={types.error ?? merged.error} />
      <Notes notes={merged.value?.notes ?? []} />
      {type && !merged.error && <Timeline type={type} selection={what as Selection} />}
      <div class="tools">
        <div class="tabs" role="group" aria-label={words.view}>
          {VIEWS.map((each) => (
            <button key={each} type="button" aria-pressed={each === view} onClick={() => change({ view: each })}>
              {words.views[each]}
            </button>
          ))}
        </div>
        <input
          id="search"
          type="search"
          aria-label={texts.value.search}
          placeholder={texts.value.search}
          value={param("search")}
          onChange={(event) => change({ search: event.currentTarget.value })}
        />
        <select aria-label={words.palette} value={palette} onChange={(event) => change({ palette: event.currentTarget.value })}>
          {PALETTES.map((each) => (
            <option key={each} value={each}>
              {words.palettes[each]}
            </option>
          ))}
        </select>
        <Actions exports={exports} title={service} selection={selection} />
      </div>
      {tree && total === 0 && <p class="muted">{words.noData}</p>}
      {tree && total > 0 && (
        <div class={"views " + view}>
          {(view === "flame" || view === "both") && (
            <FlameGraph
              tree={tree}
              unit={unit}
              view={readView()}
              palette={palette}
              texts={flameTexts.value}
              exports={exports}
              onView={writeView}
              onMenu={setMenu}
            />
          )}
          {view === "sandwich" && <SandwichView tree={tree} unit={unit} />}
          {view !== "flame" && (
            <FunctionTable
              rows={functions}
              total={total}
              unit={unit}
              search={param("search")}
              chosen={param("function")}
              onChoose={(name) => change(view === "sandwich" ? { function: name } : { search: literal(name) })}
            />
          )}
        </div>
      )}
      {menu && <Menu items={menuItems(menu)} x={menu.x} y={menu.y} label={menu.name} onClose={() => setMenu(null)} />}
    </section>
  );
}

// A regular expression that matches exactly the name.
function literal(name: string): string {
  return "^" + name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") + "$";
}
