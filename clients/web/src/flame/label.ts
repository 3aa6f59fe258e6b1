// What is written into a box: columns of a monospace font, so that no text is ever measured while painting.
import { boundedName, shortName } from "./names";

/** No box is wider than this many columns, and no name of ten kilobytes is handled once per frame. */
const LONGEST = 400;

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/gu;

/** Most names are plain, and asking the table of pictographs about each takes as long as painting its box. */
const PLAIN = /^[\x20-\x7e]*$/;

export interface Label {
  text: string;
  columns: number;
  /** Where the part begins that stays when the text is cut from the left. */
  shortAt: number;
}

export function labelOf(name: string): Label {
  const text = boundedName(name, LONGEST);
  return {
    text,
    columns: PLAIN.test(text) ? text.length : text.length + (text.match(WIDE)?.length ?? 0),
    shortAt: text.length - shortName(text).length,
  };
}

/** As much of the label as `columns` hold: the package is cut from the left first, the method last; "" if nothing fits. */
export function fitLabel(label: Label, columns: number): string {
  if (label.columns <= columns) {
    return label.text;
  }
  // Wide characters take two columns: count all as wide then, rather than write over the neighbour.
  const room = label.columns === label.text.length ? columns : Math.floor(columns / 2);
  if (room < 2) {
    return "";
  }
  const short = label.text.length - label.shortAt;
  if (label.shortAt > 0 && short < room) {
    return "…" + label.text.slice(label.text.length - room + 1);
  }
  return label.text.slice(label.shortAt, label.shortAt + room - 1) + "…";
}
