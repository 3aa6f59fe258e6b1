// Times below a chart, in the reader's language and zone: where they stand, and their texts. The date stands only where
// it changes.
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
const STEPS = [
  ...[1, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 5, 10, 15, 20, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2].map((n) => n * DAY),
  ...[1, 2, 4, 8, 16, 52].map((n) => n * WEEK),
];
// The epoch was a Thursday; weeks begin on Monday.
const MONDAY = 4 * DAY;

// What the clocks of the zone are ahead of UTC at a time; without a zone, those of this browser.
function aheadMs(ms: number, zone?: string): number {
  if (zone === undefined) {
    return -new Date(ms).getTimezoneOffset() * MINUTE;
  }
  const parts = new Intl.DateTimeFormat("en", {
    timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
  }).formatToParts(ms);
  const of = (type: string) => Number(parts.find((part) => part.type === type)!.value);
  const wall = Date.UTC(of("year"), of("month") - 1, of("day"), of("hour"), of("minute"), of("second"));
  return wall - Math.floor(ms / SECOND) * SECOND;
}

/** Whole times of the zone's clocks within the range, about `most` of them; hours that the clocks skip have none. */
export function timeTicks(fromMs: number, toMs: number, most: number, zone?: string): number[] {
  const every = STEPS.find((step) => (toMs - fromMs) / step <= most) ?? STEPS[STEPS.length - 1]!;
  const phase = every >= WEEK ? MONDAY : 0;
  const ticks: number[] = [];
  for (let wall = Math.ceil((fromMs + aheadMs(fromMs, zone) - phase) / every) * every + phase; ; wall += every) {
    // Clocks may have been changed since the tick before.
    const near = wall - aheadMs(ticks.at(-1) ?? fromMs, zone);
    const at = wall - aheadMs(near, zone);
    const isSkipped = at + aheadMs(at, zone) !== wall;
    if (at > toMs || ticks.length > most) {
      return ticks;
    }
    if (at >= fromMs && !isSkipped) {
      ticks.push(at);
    }
  }
}

/** The texts of ticks; the date is a second line, or the only one where ticks are days apart. */
export function tickTexts(ticksMs: readonly number[], language: string, zone?: string): string[] {
  const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(language, { ...options, timeZone: zone });
  const apart = ticksMs.length > 1 ? ticksMs[1]! - ticksMs[0]! : 0;
  // A day of 23 hours is one, too.
  const isDaily = apart > 12 * HOUR;
  const day = format({ month: "short", day: "numeric" });
  const time = format({ hour: "2-digit", minute: "2-digit", second: apart > 0 && apart < MINUTE ? "2-digit" : undefined, hourCycle: "h23" });
  let before = "";
  return ticksMs.map((tick) => {
    const date = day.format(tick);
    const isNew = date !== before;
    before = date;
    return isDaily ? date : time.format(tick) + (isNew ? "\n" + date : "");
  });
}
