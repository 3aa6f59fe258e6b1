// What a person takes away from a profile: a link, a command, a file of what is seen.
import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import type { Selection } from "../api/encode";
import { cliCommand } from "../cli-command";
import { isRelative } from "../time";
import { askingTexts } from "../app/asking-texts";
import { range, rangeName, span } from "../app/question";
import { texts } from "../app/settings";
import type { FlameExports } from "../flame/FlameGraph";
import { address, formatAddress } from "../url";

function save(content: Blob | string, name: string, type: string): void {
  const blob = typeof content === "string" ? new Blob([content], { type }) : content;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

interface Props {
  exports: RefObject<FlameExports | null>;
  title: string;
  selection: Selection;
}

const COPIED_MS = 2000;

// A button that says for a moment that its text is on the clipboard.
function CopyButton({ name, hint, text }: { name: string; hint?: string; text(): string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), COPIED_MS);
  };
  return (
    <button type="button" title={hint} aria-live="polite" onClick={copy}>
      {isCopied ? askingTexts.value.range.copied : name}
    </button>
  );
}

export function Actions({ exports, title, selection }: Props) {
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
  const exportAs = async (form: string) => {
    const made = exports.current;
    const name = title.replace(/[^\w.-]+/g, "_") || "profile";
    if (!made) {
      return;
    }
    switch (form) {
      case "PNG":
        return save(await made.png(), name + ".png", "image/png");
      case "SVG":
        return save(made.svg(title), name + ".svg", "image/svg+xml");
      case "HTML":
        return save(made.html(title), name + ".html", "text/html");
      case "collapsed":
        return save(made.collapsed(), name + ".txt", "text/plain");
      default:
        return save(made.speedscope(title), name + ".speedscope.json", "application/json");
    }
  };

  return (
    <>
      <CopyButton name={words.copyLink} hint={isMoving ? askingTexts.value.range.linkHint(rangeName()) : undefined} text={link} />
      {command && <CopyButton name={words.copyCli} text={() => command} />}
      <select
        aria-label={words.export}
        value=""
        onChange={(event) => {
          void exportAs(event.currentTarget.value);
          event.currentTarget.value = "";
        }}
      >
        <option value="">{words.export}</option>
        {["PNG", "SVG", "HTML", "collapsed", "speedscope"].map((form) => (
          <option key={form}>{form}</option>
        ))}
      </select>
    </>
  );
}
