// Times below a chart, in the reader's language and zone: the date stands only where it changes.
const DAY_S = 86_400;

export function tickTexts(ticksS: number[], language: string, zone?: string): string[] {
  const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(language, { ...options, timeZone: zone });
  const isDaily = ticksS.length > 1 && ticksS[1] - ticksS[0] >= DAY_S;
  const isFine = ticksS.length > 1 && ticksS[1] - ticksS[0] < 60;
  const day = format({ month: "short", day: "numeric" });
  const time = format({ hour: "2-digit", minute: "2-digit", second: isFine ? "2-digit" : undefined, hourCycle: "h23" });
  let before = "";
  return ticksS.map((tick) => {
    const date = day.format(tick * 1000);
    const isNew = date !== before;
    before = date;
    return isDaily ? date : time.format(tick * 1000) + (isNew ? "\n" + date : "");
  });
}
