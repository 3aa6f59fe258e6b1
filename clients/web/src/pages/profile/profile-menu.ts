// What can be done with one frame of the flame graph.
import { askingTexts } from "../../app/asking-texts";
import { texts } from "../../app/settings";
import { packageOf } from "../../flame/names";
import type { MenuRequest } from "../../flame/stage";
import { ancestorsOf, nameOf, OTHER, pathOf } from "../../flame/tree";
import { change, param } from "../../url";
import { goToFunction } from "../callers-callees";
import type { MenuItem } from "../menu";
import { frozenLink } from "./actions";
import { addTo, addTransform } from "./profile-state";
import { loadBelow } from "./profile-tree";
import { copyText } from "../../copy";

// Root first, without the root itself.
function stackOf({ tree, node }: MenuRequest): string {
  return ancestorsOf(tree, node).slice(1).map((each) => nameOf(tree, each)).join("\n");
}

export function menuItems(request: MenuRequest): MenuItem[] {
  const words = texts.value.menu;
  const { name } = request;
  // In a tree that was transformed, the frame is not where the server has it.
  const isAsStored = param("transforms") === "" && param("flip") === "";
  const load = { name: askingTexts.value.others.load, run: () => loadBelow(request.tree, request.tree.parent[request.node]!) };
  const copy = (text: string) => void copyText(text);
  return [
    ...(name === OTHER && isAsStored ? [load] : []),
    { name: words.focus, run: () => addTransform("focus", name) },
    { name: words.hide, run: () => addTransform("hide", name) },
    { name: words.recursion, run: () => addTransform("recursion", name) },
    // The names of C tell no package.
    ...(packageOf(name) === "" ? [] : [{ name: words.module, run: () => addTransform("module", packageOf(name)) }]),
    { name: words.sandwich, run: () => change({ view: "sandwich", function: name }) },
    { name: texts.value.comparing.showHistory, run: () => goToFunction(name) },
    { name: words.lines, run: () => goToFunction(name, "lines") },
    { name: words.traces, run: () => goToFunction(name, "spans") },
    { name: words.with, run: () => addTo("with", name) },
    { name: words.without, run: () => addTo("without", name) },
    { name: words.copyName, run: () => copy(name) },
    { name: words.copyStack, run: () => copy(stackOf(request)) },
    { name: words.copyLink, run: () => copy(frozenLink({ zoom: pathOf(request.tree, request.node).join(".") })) },
  ];
}
