// Ranges of time as they stand in addresses: "now-1h" to "now", or milliseconds since the epoch.

export interface Range {
  from: string;
  to: string;
}

export interface Span {
  startMs: number;
  endMs: number;
}

const UNITS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

// Milliseconds of "now", "now-90m" or "1700000000000"; NaN for anything else.
export function resolveTime(text: string, nowMs: number): number {
  const relative = /^now(?:-(\d{1,9})([smhdw]))?$/.exec(text);
  if (relative) {
    return nowMs - (relative[1] ? Number(relative[1]) * UNITS[relative[2]] : 0);
  }
  return /^\d{1,15}$/.test(text) ? Number(text) : NaN;
}

// The last hour where the range makes no sense.
export function resolveRange(range: Range, nowMs: number): Span {
  const startMs = resolveTime(range.from, nowMs);
  const endMs = resolveTime(range.to, nowMs);
  return startMs < endMs ? { startMs, endMs } : { startMs: nowMs - UNITS.h, endMs: nowMs };
}

export function isRelative(range: Range): boolean {
  return range.from.startsWith("now") || range.to.startsWith("now");
}

// What <input type="datetime-local"> takes: local time without a zone, to the minute, or to the second of a field whose step is one.
export function toLocal(ms: number, places: 16 | 19 = 16): string {
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, places);
}

// Seconds of a step that gives about `points` points, rounded up to a length that people know.
export function chooseStep(span: Span, points: number): number {
  const least = (span.endMs - span.startMs) / 1000 / points;
  const steps = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  return steps.find((step) => step >= least) ?? 86400;
}
