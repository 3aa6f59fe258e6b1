// One question in full: cost over time, flame graph, tables, callers and callees.
import { useEffect, useMemo, useState } from "preact/hooks";
import { askSandwich } from "../../api/functions";
import { useAnswer } from "../../api/use-answer";
import { chooseType, rangeName, selector, typeName, useProfileTypes } from "../../app/question";
import { askingTexts } from "../../app/asking-texts";
import { isNarrow } from "../../app/narrow";
import { flameTexts, texts } from "../../app/settings";
import { FlameGraph } from "../../flame/FlameGraph";
import type { MenuRequest } from "../../flame/stage";
import type { FlameTree } from "../../flame/tree";
import { serviceOf } from "../../selector";
import { formatValue } from "../../units";
import { change, go, param, question } from "../../url";
import { Actions } from "./actions";
import { CallersAndCallees } from "../callers-callees";
import { Empty } from "../empty";
import { ExportButton } from "../export-button";
import { Menu } from "../menu";
import { Failure, Notes } from "../notice";
import { usePlace } from "../use-place";
import { useSamples } from "../use-samples";
import { HideBackground, StackChips } from "./profile-chips";
import { menuItems } from "./profile-menu";
import { CostlyQuestion, ExplainButton, PlanTable, usePermission, type Asked } from "./profile-cost";
import { useHidden } from "./profile-background";
import { otherNotes, Others } from "./profile-others";
import { choosePalette, chosenPalette, PALETTES, readView, selectionOfAddress, writeView } from "./profile-state";
import { ProfileTable } from "./profile-table";
import { Timeline } from "./profile-timeline";
import { useTree } from "./profile-tree";
import { WholeRange } from "./whole-range";
import { withoutFrames } from "./without-frames";
import "./profile.css";

const NO_TYPES: string[] = [];
// Of the callers and the callees in the sandwich.
const ZOOMS: [string, string] = ["zoom2", "zoom3"];
const VIEWS = ["flame", "table", "both", "sandwich"] as const;

type Without = ((tree: FlameTree) => FlameTree) | undefined;

interface GraphProps {
  asked: Asked;
  types: string[];
  tree: FlameTree;
  // Hides background code.
  without: Without;
  unit: string;
  service: string;
  type: string;
  onMenu(request: MenuRequest): void;
}

// The zoom and the frame under the pointer change often, and nothing else of the page depends on them.
function Graph({ asked, types, tree, without, unit, service, type, onMenu }: GraphProps) {
  const { places, onHover } = usePlace(asked);
  const { counts, want } = useSamples(asked.selection, asked.key, types);
  const shownCounts = useMemo(() => (counts && without ? without(counts) : counts), [counts, without]);
  return (
    <FlameGraph
      tree={tree}
      unit={unit}
      view={readView()}
      palette={chosenPalette()}
      texts={flameTexts.value}
      tools={(made) => <ExportButton made={made} title={service} type={type} />}
      detail={places[0]}
      places={places}
      onView={writeView}
      onMenu={onMenu}
      counts={shownCounts}
      onHover={(node, of) => {
        if (node !== null) want();
        onHover(node, of);
      }}
    />
  );
}

function SandwichView({ asked: { selection, key }, types, without }: { asked: Asked; types: string[]; without: Without }) {
  const name = param("function");
  const of = name === "" ? null : `${key} ${name}`;
  const sandwich = useAnswer(of, (abort) => askSandwich(selection, name, abort));
  return name === "" ? (
    <p class="muted">{texts.value.profile.chooseFunction}</p>
  ) : (
    <CallersAndCallees name={name} sandwich={sandwich} question={{ selection, key: of, types }} zooms={ZOOMS} without={without} />
  );
}

function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  const search = document.querySelector<HTMLInputElement>("#search");
  // The browser's own search cannot look into the picture; a second Ctrl F, in the field, reaches it.
  if (event.key === "f" && event.ctrlKey && search && target !== search) {
    event.preventDefault();
    search.focus();
    return;
  }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const view = VIEWS[Number(event.key) - 1];
  if (view) {
    change({ view });
  } else if (event.key === "5") {
    go("diff", question());
  } else if (event.key === "i") {
    change({ flip: param("flip") === "1" ? "" : "1" });
  } else if (event.key === "f") {
    event.preventDefault();
    search?.focus();
  } else if (event.key === "j") {
    event.preventDefault();
    document.querySelector<HTMLElement>(".functions tbody button[tabindex='0']")?.focus();
  }
}

export function Profile() {
  const words = texts.value.profile;
  const types = useProfileTypes();
  const type = chooseType(types.value ?? []);
  const [menu, setMenu] = useState<MenuRequest | null>(null);

  useEffect(() => {
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);

  const typeIds = useMemo(() => types.value?.map(({ ID }) => ID) ?? NO_TYPES, [types.value]);

  const selection = selectionOfAddress(type?.ID ?? param("type"));
  const { asked, isHeld, plan, permit } = usePermission(selection);
  const merged = useTree(asked);
  const hidden = useHidden(asked);
  const whole = merged.value?.tree;
  const hiddenKinds = hidden.kinds.join(" ");
  // What is hidden changes with the answer that tells files and modules, too.
  const without = useMemo<Without>(
    () => (hidden.kinds.length > 0 ? (of) => withoutFrames(of, hidden.has) : undefined),
    [hiddenKinds, hidden.answer],
  );
  const tree = useMemo(() => (whole && without ? without(whole) : whole), [whole, without]);
  const unit = merged.value?.unit ?? "";
  const notes = merged.value?.notes ?? [];

  if (types.value?.length === 0) {
    // Between two profiles of the whole range there is no need to explain how to send one.
    return param("whole") === "" ? (
      <Empty />
    ) : (
      <section class="sheet">
        <p>{askingTexts.value.timeline.between(rangeName())}</p>
        <WholeRange />
      </section>
    );
  }
  const view = VIEWS.find((each) => each === param("view")) ?? "both";
  const palette = chosenPalette();
  const service = serviceOf(selector.value) || words.allServices;
  const total = tree ? tree.total[0] : 0;

  const more = (
    <>
      <select aria-label={words.palette} value={palette} onChange={(event) => choosePalette(event.currentTarget.value)}>
        {PALETTES.map((each) => (
          <option key={each} value={each}>
            {words.palettes[each]}
          </option>
        ))}
      </select>
      <HideBackground />
      <Actions selection={selection} tree={tree} />
    </>
  );
  return (
    <section class={isHeld ? "profile held" : "profile"} aria-busy={merged.isLoading}>
      <div class="headline">
        <h1>{type ? words.title(typeName(type), service, rangeName()) : texts.value.loading}</h1>
        {tree && !isHeld && <span class="figure">{formatValue(total, unit)}</span>}
        <StackChips hidden={hidden} />
        <ExplainButton />
      </div>
      {isHeld && plan.value && <CostlyQuestion plan={plan.value} onRun={permit} />}
      {param("explain") === "1" && <PlanTable answer={plan} />}
      <Failure error={types.error ?? merged.error} />
      <Notes notes={otherNotes(notes)} />
      {asked && !merged.error && <Timeline asked={asked} />}
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
        {isNarrow.value ? (
          <details class="more-tools">
            <summary>{askingTexts.value.sheet.tools}</summary>
            {more}
          </details>
        ) : (
          more
        )}
      </div>
      {tree && total === 0 && <p class="muted">{words.noData}</p>}
      {tree && (view === "flame" || view === "both") && <Others tree={whole ?? tree} notes={notes} isLoading={merged.isLoading} />}
      {asked && tree && total > 0 && (
        <div class={"views " + view}>
          {(view === "flame" || view === "both") && (
            <Graph
              asked={asked}
              types={typeIds}
              tree={tree}
              without={without}
              unit={unit}
              service={service}
              type={type ? typeName(type) : ""}
              onMenu={setMenu}
            />
          )}
          {view === "sandwich" && <SandwichView asked={asked} types={typeIds} without={without} />}
          {view !== "flame" && <ProfileTable asked={asked} hidden={hidden} />}
        </div>
      )}
      {menu && <Menu items={menuItems(menu)} x={menu.x} y={menu.y} label={menu.name} onClose={() => setMenu(null)} />}
    </section>
  );
}
