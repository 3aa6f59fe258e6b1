// Spans of a trace in the order in which they are read: parents before children, siblings by start.

export interface StoredSpan {
  spanId?: string;
  parentId?: string;
  service?: string;
  name?: string;
  status?: string;
  startNs?: string;
  endNs?: string;
}

export interface PlacedSpan {
  span: StoredSpan;
  depth: number;
}

// Spans whose parent is not among them stand at the top. A loop of parents, which only a broken sender makes, is cut.
export function placeSpans(spans: StoredSpan[]): PlacedSpan[] {
  const known = new Set(spans.map((span) => span.spanId));
  const children = new Map<string, StoredSpan[]>();
  for (const span of spans) {
    const parent = span.parentId && known.has(span.parentId) ? span.parentId : "";
    children.set(parent, [...(children.get(parent) ?? []), span]);
  }
  for (const siblings of children.values()) {
    siblings.sort((a, b) => compareTimes(a.startNs, b.startNs));
  }

  const placed: PlacedSpan[] = [];
  const seen = new Set<StoredSpan>();
  const put = (first: StoredSpan) => {
    const stack: PlacedSpan[] = [{ span: first, depth: 0 }];
    while (stack.length > 0) {
      const next = stack.pop()!;
      if (seen.has(next.span)) {
        continue;
      }
      seen.add(next.span);
      placed.push(next);
      const below = children.get(next.span.spanId ?? "") ?? [];
      stack.push(...below.map((span) => ({ span, depth: next.depth + 1 })).reverse());
    }
  };
  (children.get("") ?? []).forEach(put);
  spans.forEach((span) => !seen.has(span) && put(span));
  return placed;
}

// Nanoseconds since the epoch have more digits than a number keeps.
function compareTimes(a = "0", b = "0"): number {
  const difference = BigInt(a) - BigInt(b);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export function nanosecondsBetween(from = "0", to = "0"): number {
  return Number(BigInt(to) - BigInt(from));
}
