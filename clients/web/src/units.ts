// Values for people. Agrees to the character with the command line client (server/base/human.c), so that a number
// copied from one is found in the other.

interface Scale {
  factors: readonly number[];
  names: readonly string[];
}

const TIME: Scale = {
  factors: [1, 1e3, 1e6, 1e9, 60e9, 3600e9, 86400e9],
  names: [" ns", " µs", " ms", " s", " min", " h", " d"],
};
const BYTES: Scale = {
  factors: [1, 1024, 1024 ** 2, 1024 ** 3, 1024 ** 4],
  names: [" B", " KiB", " MiB", " GiB", " TiB"],
};
const COUNT: Scale = {
  factors: [1, 1e3, 1e6, 1e9, 1e12],
  names: ["", "k", "M", "G", "T"],
};

/** As C's "%.*f": a value exactly between two decimals goes to the even one, where toFixed would go up. */
function fixed(value: number, digits: number): string {
  const isTie = Math.abs(value * 2 ** (digits + 1)) % 2 === 1;
  if (!isTie) {
    return value.toFixed(digits);
  }
  const below = Math.floor(value * 10 ** digits);
  return ((below % 2 === 0 ? below : below + 1) / 10 ** digits).toFixed(digits);
}

/** Three significant digits in the largest unit in which the value is at least 1. */
function scaled(value: number, scale: Scale): string {
  let i = 0;
  while (i + 1 < scale.factors.length && Math.abs(value) >= scale.factors[i + 1]! * 0.9995) {
    i++;
  }
  const v = value / scale.factors[i]!;
  const digits = Math.abs(v) >= 100 || Number.isInteger(v) ? 0 : Math.abs(v) >= 10 ? 1 : 2;
  return fixed(v, digits) + scale.names[i];
}

/**
 * "12.3 s", "4.56 MiB", "1.23k". `unit` is that of the profile type ("nanoseconds", "bytes"), or "cores" or "bytes/s"
 * for rates; everything else is a count.
 */
export function formatValue(value: number, unit: string): string {
  switch (unit) {
    case "nanoseconds":
      return scaled(value, TIME);
    case "bytes":
      return scaled(value, BYTES);
    case "bytes/s":
      return scaled(value, BYTES) + "/s";
    case "cores":
      return scaled(value, COUNT) + (value === 1 ? " core" : " cores");
    default:
      return scaled(value, COUNT);
  }
}

export function formatDuration(milliseconds: number): string {
  return scaled(milliseconds * 1e6, TIME);
}

function percent(value: number, sign: boolean): string {
  if (value !== 0 && Math.abs(value) < 0.005) {
    return (value < 0 ? "-" : sign ? "+" : "") + "<0.01%";
  }
  return (sign && value >= 0 ? "+" : "") + fixed(value, 2) + "%";
}

/** The share of `part` in `whole`; never "0.00%" for something that is there. */
export function formatShare(part: number, whole: number): string {
  return percent(whole > 0 ? (100 * part) / whole : 0, false);
}

/** A change of `part` relative to `whole`, with its sign. */
export function formatChange(part: number, whole: number): string {
  return percent(whole > 0 ? (100 * part) / whole : 0, true);
}

/** A whole number with thousands separators: "1,204". */
export function formatCount(n: number): string {
  return Math.trunc(n)
    .toFixed(0)
    .replace(/\B(?=(\d{3})+$)/g, ",");
}
