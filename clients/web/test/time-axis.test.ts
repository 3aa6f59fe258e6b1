import assert from "node:assert/strict";
import { test } from "node:test";
import { tickTexts, timeTicks } from "../src/chart/time-axis";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const utc = (text: string) => Date.parse(text + "Z");
const textsOf = (from: string, to: string, most: number, zone: string) => tickTexts(timeTicks(utc(from), utc(to), most, zone), "en", zone);

test("the date stands where it changes", () => {
  assert.deepEqual(textsOf("2023-11-13T22:30", "2023-11-14T01:30", 4, "UTC"), ["23:00\nNov 13", "00:00\nNov 14", "01:00"]);
  assert.deepEqual(textsOf("2023-11-13T22:30", "2023-11-15T22:30", 2, "UTC"), ["Nov 14", "Nov 15"]);
});

test("ticks are whole times of the zone", () => {
  assert.deepEqual(textsOf("2024-01-01T00:00", "2024-01-01T04:00", 5, "Asia/Kolkata"), ["06:00\nJan 1", "07:00", "08:00", "09:00"]);
  assert.deepEqual(textsOf("2024-01-01T00:00", "2024-01-02T12:00", 3, "Asia/Shanghai"), ["12:00\nJan 1", "00:00\nJan 2", "12:00"]);
});

test("ticks follow clocks that are changed", () => {
  // In New York the clocks went from 2 to 3 on March 10 and from 2 to 1 on November 3.
  assert.deepEqual(textsOf("2024-03-10T05:00", "2024-03-10T12:00", 4, "America/New_York"), ["00:00\nMar 10", "04:00", "06:00", "08:00"]);
  assert.deepEqual(textsOf("2024-11-03T04:00", "2024-11-03T13:00", 4, "America/New_York"), ["00:00\nNov 3", "03:00", "06:00"]);
  assert.deepEqual(textsOf("2024-03-09T05:00", "2024-03-12T05:00", 4, "America/New_York"), ["Mar 9", "Mar 10", "Mar 11", "Mar 12"]);
});

test("ranges of any length have a few ticks, all within them", () => {
  for (const zone of ["UTC", "America/St_Johns", "Australia/Lord_Howe"]) {
    for (const length of [10_000, 61_000, HOUR, 5 * HOUR, DAY, 3 * DAY, 12 * DAY, 31 * DAY, 366 * DAY, 3000 * DAY]) {
      const from = utc("2024-04-06T13:37:11");
      const ticks = timeTicks(from, from + length, 8, zone);
      assert.ok(ticks.length >= 1 && ticks.length <= 9, `${zone} ${length}: ${ticks.length}`);
      assert.ok(ticks.every((at, i) => at >= from && at <= from + length && (i === 0 || at > ticks[i - 1]!)));
    }
  }
});

test("weeks begin on Monday", () => {
  const [first] = timeTicks(utc("2024-01-02T00:00"), utc("2024-02-20T00:00"), 8, "UTC");
  assert.equal(new Date(first!).getUTCDay(), 1);
});
