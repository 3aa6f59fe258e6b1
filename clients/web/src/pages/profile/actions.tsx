// What a person takes away from a profile: a link and a command. Files of the picture are made beside it.
import type { Selection } from "../../api/encode";
import { askingTexts } from "../../app/asking-texts";
import { range, rangeName, span } from "../../app/question";
import { texts } from "../../app/settings";
import { cliCommand } from "./cli-command";
import { isRelative } from "../../time";
import { address, formatAddress } from "../../url";
import { CopyButton } from "../copied-text";

export function Actions({ selection }: { selection: Selection }) {
  const words = texts.value.profile;
  const isMoving = isRelative(range.value);
  const link = () => {
    const { from, to } = isMoving
      ? { from: String(Math.floor(span.value.startMs)), to: String(Math.floor(span.value.endMs)) }
      : range.value;
    return location.origin + formatAddress(address.value.page, { ...address.value.params, from, to });
  };
  const { startMs, endMs } = span.value;
  const times = [startMs, endMs].map((ms) => new Date(ms).toISOString());
  const command = cliCommand(selection, location.origin, times[0], times[1]);

  return (
    <>
      <CopyButton name={words.copyLink} hint={isMoving ? askingTexts.value.range.linkHint(rangeName()) : undefined} text={link} />
      {command && <CopyButton name={words.copyCli} text={command} />}
    </>
  );
}
