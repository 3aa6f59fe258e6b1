// What a person takes away from a profile: a link, a command, a file of what is seen.
import type { RefObject } from "preact";
import type { Selection } from "../api/encode";
import { cliCommand } from "../cli-command";
import { isRelative } from "../time";
import { range, span } from "../app/question";
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

export function Actions({ exports, title, selection }: Props) {
  const words = texts.value.profile;

  const copyLink = () => {
    const { from, to } = isRelative(range.value)
      ? { from: String(Math.floor(span.value.startMs)), to: String(Math.floor(span.value.endMs)) }
      : range.value;
    const link = formatAddress(address.value.page, { ...address.value.params, from, to });
    void navigator.clipboard.writeText(location.origin + link);
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
      <button type="button" onClick={copyLink}>
        {words.copyLink}
      </button>
      {command && (
        <button type="button" onClick={() => void navigator.clipboard.writeText(command)}>
          {words.copyCli}
        </button>
      )}
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
