// What a person takes away from a profile: a link and a command. Files of the picture are made beside it.
import type { Selection } from "../../api/encode";
import { askingTexts } from "../../app/asking-texts";
import { range, rangeName, span } from "../../app/question";
import { texts } from "../../app/settings";
import { ancestorsOf, nameOf, nodeAt, OTHER, type FlameTree } from "../../flame/tree";
import { isRelative } from "../../time";
import { address, formatAddress, param, type Params } from "../../url";
import { CopyButton } from "../copied-text";
import { cliCommand, type Look } from "./cli-command";
import { chosenPalette, readView } from "./profile-state";
import { labelOfTable, tableOfAddress } from "./table-tools";

// A colleague who opens it later sees the same: the times are those of now, and the colours those of the sender.
export function frozenLink(params: Params = {}): string {
  const { from, to } = isRelative(range.value)
    ? { from: String(Math.floor(span.value.startMs)), to: String(Math.floor(span.value.endMs)) }
    : range.value;
  return location.origin + formatAddress(address.value.page, { ...address.value.params, palette: chosenPalette(), from, to, ...params });
}

// What the view in front shows; `tree` is what the graph begins with.
function lookOfAddress(tree: FlameTree | undefined): Look {
  const { zoom, transforms, flip } = readView();
  const view = param("view");
  if (view === "sandwich" && param("function") !== "") {
    return { view: "sandwich", name: param("function") };
  }
  if (view === "table" && labelOfTable() === "") {
    return { view: "table", filter: param("filter"), ...tableOfAddress() };
  }
  // A path of a flipped graph, or of one with hidden frames, is not the beginning of a stored stack trace.
  const isStored = !flip && param("hide") === "";
  const path = tree && isStored ? ancestorsOf(tree, nodeAt(tree, zoom)).slice(1).map((node) => nameOf(tree, node)) : [];
  return { view: "flame", callSite: path.includes(OTHER) ? [] : path, transforms };
}

export function Actions({ selection, tree }: { selection: Selection; tree: FlameTree | undefined }) {
  const words = texts.value.profile;
  const isMoving = isRelative(range.value);
  const { startMs, endMs } = span.value;
  const times = [startMs, endMs].map((ms) => new Date(ms).toISOString());
  const cliHint = param("hide") === "" ? undefined : askingTexts.value.background.notInCli;
  const command = (of?: FlameTree) => cliCommand(selection, lookOfAddress(of), location.origin, times[0]!, times[1]!);

  return (
    <>
      <CopyButton name={words.copyLink} hint={isMoving ? askingTexts.value.range.linkHint(rangeName()) : undefined} text={() => frozenLink()} />
      {command() !== null && <CopyButton name={words.copyCli} hint={cliHint} text={() => command(tree)!} />}
    </>
  );
}
