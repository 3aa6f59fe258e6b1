// What the address says about the page of a profile, and how the page changes it.
import { TOP_KINDS, type RowFilter, type Selection, type TopKind } from "../../api/encode";
import { selector, span } from "../../app/question";
import { keepPalette, palette } from "../../app/settings";
import type { Palette } from "../../flame/colours";
import type { FlameView } from "../../flame/FlameGraph";
import type { Transform, TransformKind } from "../../flame/transforms";
import { change, formatList, param, parseList } from "../../url";
import { zoomOfAddress } from "../address-flame";

const KINDS: TransformKind[] = ["focus", "hide", "recursion", "module"];

export const PALETTES: Palette[] = ["package", "kind", "self"];

// The colouring of the address, or the one that was chosen last.
export function chosenPalette(): Palette {
  return PALETTES.find((each) => each === param("palette", palette.value)) ?? "package";
}

export function choosePalette(name: string): void {
  keepPalette(name);
  change({ palette: name });
}

export function listParam(name: string): string[] {
  return parseList(param(name));
}

export function addTo(name: string, entry: string): void {
  const entries = listParam(name);
  if (!entries.includes(entry)) {
    change({ [name]: formatList([...entries, entry]), zoom: "" });
  }
}

export function removeFrom(name: string, entry: string): void {
  change({ [name]: formatList(listParam(name).filter((each) => each !== entry)), zoom: "" });
}

function readTransforms(): Transform[] {
  return listParam("transforms").flatMap((entry) => {
    const kind = KINDS.find((each) => entry.startsWith(each + " "));
    return kind ? [{ kind, name: entry.slice(kind.length + 1) }] : [];
  });
}

export function readView(): FlameView {
  return {
    zoom: zoomOfAddress(),
    search: param("search"),
    flip: param("flip") === "1",
    transforms: readTransforms(),
  };
}

export function writeView(view: FlameView): void {
  change({
    zoom: view.zoom.join("."),
    search: view.search,
    flip: view.flip ? "1" : "",
    transforms: formatList(view.transforms.map(({ kind, name }) => `${kind} ${name}`)),
  });
}

export function addTransform(kind: TransformKind, name: string): void {
  const view = readView();
  writeView({ ...view, zoom: [], transforms: [...view.transforms, { kind, name }] });
}

// Rows of tables that narrow the question: entries "KIND name", gathered by kind.
export function readRows(): RowFilter[] {
  const filters = new Map<TopKind, string[]>();
  for (const entry of listParam("rows")) {
    const kind = TOP_KINDS.find((each) => entry.startsWith(each + " "));
    if (kind) {
      filters.set(kind, [...(filters.get(kind) ?? []), entry.slice(kind.length + 1)]);
    }
  }
  return [...filters].map(([kind, names]) => ({ kind, names }));
}

export function namesOfRows(kind: TopKind): string[] {
  return readRows().find((filter) => filter.kind === kind)?.names ?? [];
}

// The rows of one table that narrow the question; those of other tables stay.
export function writeRows(kind: TopKind, names: string[]): void {
  const others = listParam("rows").filter((entry) => !entry.startsWith(kind + " "));
  change({ rows: formatList([...others, ...names.map((name) => `${kind} ${name}`)]), zoom: "" });
}

export function selectionOfAddress(type: string): Selection {
  return {
    type,
    selector: selector.value,
    startMs: span.value.startMs,
    endMs: span.value.endMs,
    functions: listParam("with"),
    without: listParam("without"),
    rows: readRows(),
  };
}

// What an answer depends on besides the range, whose times move while its name stays.
export function keyOfSelection(selection: Selection): string {
  return JSON.stringify({ ...selection, startMs: 0, endMs: 0 });
}
