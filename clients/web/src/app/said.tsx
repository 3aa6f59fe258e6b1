// Words of the server, which speaks English: in the language of the page if it is one of the sentences that it knows, otherwise marked
// as English, for voices and fonts.
import { saidZh } from "../texts/said-zh";
import { formatTime } from "./question";
import { language } from "./settings";

const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z/g;

/** The words of the server where only text can stand. */
export function inOwnWords(text = ""): string {
  const said = (language.value === "zh" && saidZh(text)) || text;
  return said.replace(TIME, (time) => formatTime(Date.parse(time)));
}

/** The same as a part of the page. */
export function Said({ text }: { text?: string }) {
  if (!text) {
    return null;
  }
  const isKnown = language.value === "zh" && saidZh(text) !== undefined;
  return (
    <span lang={isKnown ? undefined : "en"} title={isKnown ? text : undefined}>
      {inOwnWords(text)}
    </span>
  );
}
