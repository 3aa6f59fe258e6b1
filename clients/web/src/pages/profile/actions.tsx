// What a person takes away from a profile: a link and a command. Files of the picture are made beside it.
import type { Selection } from "../../api/encode";
import { askingTexts } from "../../app/asking-texts";
import { range, rangeName, span } from "../../app/question";
import { texts } from "../../app/settings";
import { cliCommand } from "./cli-command";
import { isRelative } from "../../time";
import { address, formatAddress, type Params } from "../../url";
import { CopyButton } from "../copied-text";
import { chosenPalette } from "./profile-state";

// A colleague who opens it later sees the same: the times are those of now, and the colours those of the sender.
export function frozenLink(params: Params = {}): string {
  const { from, to } = isRelative(range.value)
    ? { from: String(Math.floor(span.value.startMs)), to: String(Math.floor(span.value.endMs)) }
    : range.value;
  return location.origin + formatAddress(address.value.page, { ...address.value.params, palette: chosenPalette(), from, to, ...params });
}

export function Actions({ selection }: { selection: Selection }) {
  const words = texts.value.profile;
  const isMoving = isRelative(range.value);
  const { startMs, endMs } = span.value;
  const times = [startMs, endMs].map((ms) => new Date(ms).toISOString());
  const command = cliCommand(selection, location.origin, times[0], times[1]);

  return (
    <>
      <CopyButton name={words.copyLink} hint={isMoving ? askingTexts.value.range.linkHint(rangeName()) : undefined} text={() => frozenLink()} />
      {command && <CopyButton name={words.copyCli} text={command} />}
    </>
  );
}
