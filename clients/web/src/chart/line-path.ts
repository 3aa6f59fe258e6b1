// Lines over time as paths: where times and values lie, gaps as gaps, and a band where points are denser than pixels.

/** Of the area of a chart, in pixels of CSS, with the range of times and the largest value that it shows. */
export interface Frame {
  width: number;
  height: number;
  fromMs: number;
  toMs: number;
  most: number;
}

export type Values = readonly (number | null)[];

export const toX = ({ width, fromMs, toMs }: Frame, ms: number) => (toMs > fromMs ? ((ms - fromMs) / (toMs - fromMs)) * width : width / 2);
export const toMs = ({ width, fromMs, toMs }: Frame, x: number) => fromMs + (Math.max(0, Math.min(width, x)) / width) * (toMs - fromMs);
export const toY = ({ height, most }: Frame, value: number) => height - (value / most) * height;

/** The place of the time nearest to `ms` among ascending times; 0 if there are none. */
export function nearestTime(timesMs: readonly number[], ms: number): number {
  let [low, high] = [0, timesMs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timesMs[middle]! < ms) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const isBeforeNearer = low > 0 && (low === timesMs.length || ms - timesMs[low - 1]! <= timesMs[low]! - ms);
  return isBeforeNearer ? low - 1 : low;
}

/** The place nearest to `at`, at most `reach` away, where a line has a value; `at` itself if there is none. */
export function nearestValue(lines: readonly { values: Values }[], at: number, reach: number): number {
  for (let away = 0; away <= reach; away++) {
    const found = [at - away, at + away].find((i) => lines.some(({ values }) => typeof values[i] === "number"));
    if (found !== undefined) {
      return found;
    }
  }
  return at;
}

/** Whole steps of an axis from 0 to `top`, at most `most` besides 0: of 1, 2 or 5, for bytes powers of two. */
export function valueTicks(top: number, most: number, unit = ""): number[] {
  const least = top / most;
  let step: number;
  if (unit.startsWith("bytes")) {
    step = 2 ** Math.ceil(Math.log2(least));
  } else {
    const magnitude = 10 ** Math.floor(Math.log10(least));
    step = magnitude * [1, 2, 5, 10].find((factor) => factor * magnitude >= least * (1 - 1e-9))!;
  }
  return Array.from({ length: Math.floor((top / step) * (1 + 1e-9)) + 1 }, (_, i) => i * step);
}

/** What is drawn of a line: the highest value at each place, and the lowest where it may be another one. */
export interface Trace {
  xs: number[];
  highs: Values;
  lows: Values | null;
}

// More points than pixels: the highest and the lowest of each pixel.
function byPixel(frame: Frame, timesMs: readonly number[], highs: Values, lows: Values): Trace {
  const n = Math.max(1, Math.round(frame.width));
  const trace = { xs: Array.from({ length: n }, (_, i) => i + 0.5), highs: new Array<number | null>(n).fill(null), lows: new Array<number | null>(n).fill(null) };
  timesMs.forEach((ms, i) => {
    const [high, low] = [highs[i], lows[i] ?? highs[i]];
    if (high === null || high === undefined || ms < frame.fromMs || ms > frame.toMs) {
      return;
    }
    const at = Math.min(n - 1, Math.floor(toX(frame, ms)));
    trace.highs[at] = Math.max(trace.highs[at] ?? high, high);
    trace.lows[at] = Math.min(trace.lows[at] ?? low!, low!);
  });
  return trace;
}

export function traceOf(frame: Frame, timesMs: readonly number[], values: Values, lows: Values | null = null): Trace {
  if (timesMs.length > frame.width) {
    return byPixel(frame, timesMs, values, lows ?? values);
  }
  return { xs: timesMs.map((ms) => toX(frame, ms)), highs: values, lows };
}

// Runs of values without a gap, as pairs of the first and the last place.
export function runsOf(values: Values): [number, number][] {
  const runs: [number, number][] = [];
  values.forEach((value, i) => {
    const last = runs.at(-1);
    if (value === null || value === undefined) {
      return;
    }
    if (last && last[1] === i - 1) {
      last[1] = i;
    } else {
      runs.push([i, i]);
    }
  });
  return runs;
}

const short = (n: number) => String(Math.round(n * 100) / 100);
const DOT = 1.75;

/** A line for each run; a single value between two gaps is a dot, or it would not be seen. */
export function linePath(xs: readonly number[], values: Values, yOf: (value: number) => number): string {
  return runsOf(values)
    .map(([first, last]) => {
      const place = (i: number) => `${short(xs[i]!)} ${short(yOf(values[i]!))}`;
      if (first === last) {
        const [x, y] = [xs[first]!, yOf(values[first]!)];
        return `M${short(x - DOT)} ${short(y)}a${DOT} ${DOT} 0 1 0 ${2 * DOT} 0a${DOT} ${DOT} 0 1 0 ${-2 * DOT} 0`;
      }
      let path = "M" + place(first);
      for (let i = first + 1; i <= last; i++) {
        path += "L" + place(i);
      }
      return path;
    })
    .join("");
}

/** The area between two lines with the same gaps. */
export function bandPath(xs: readonly number[], highs: Values, lows: Values, yOf: (value: number) => number): string {
  return runsOf(highs)
    .map(([first, last]) => {
      const upper: string[] = [];
      const lower: string[] = [];
      for (let i = first; i <= last; i++) {
        upper.push(`${short(xs[i]!)} ${short(yOf(highs[i]!))}`);
        lower.push(`${short(xs[i]!)} ${short(yOf(lows[i] ?? highs[i]!))}`);
      }
      return `M${[...upper, ...lower.reverse()].join("L")}Z`;
    })
    .join("");
}
