// Selects a part of a chart by a mouse, a finger or keys. With Alt, or while a comparison is chosen, it is a window to compare,
// and the time before it is marked as the baseline.
import type uPlot from "uplot";

interface Wishes {
  isComparing?: boolean;
  // Of the two windows of a comparison.
  windowNames?: { baseline: string; comparison: string };
  onRange(fromMs: number, toMs: number): void;
  onCompare?(fromMs: number, toMs: number): void;
  onReset?(): void;
}

// A shorter drag is a click whose hand trembled.
const LEAST_PX = 4;
const PAGE = 10;

// The point that a key leads to among n, or undefined for any other key.
export function pointOf(key: string, at: number, n: number): number | undefined {
  const steps: Record<string, number> = {
    ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - PAGE, PageDown: at + PAGE, Home: 0, End: n - 1,
  };
  return key in steps ? Math.max(0, Math.min(n - 1, steps[key]!)) : undefined;
}

export class Brush {
  private readonly baseline = document.createElement("div");
  private readonly comparison = document.createElement("div");
  // Whether keys or a finger select, and the chart's own mouse does not.
  private isByHand = false;
  private at: number;
  // Where a selection by keys began.
  private anchor: number | null = null;

  constructor(
    private readonly plot: uPlot,
    private readonly timesMs: number[],
    private readonly wishes: () => Wishes,
  ) {
    this.at = timesMs.length - 1;
    this.baseline.className = "brush-window baseline";
    this.comparison.className = "brush-window";
    plot.over.append(this.baseline, this.comparison);
    plot.over.addEventListener("pointerdown", (event) => event.pointerType === "touch" && this.touched(event));
    this.showWindows(0, 0, false);
  }

  private isComparing(isAlt: boolean): boolean {
    const { isComparing, onCompare } = this.wishes();
    return onCompare !== undefined && (isAlt || isComparing === true);
  }

  private finish(fromMs: number, toMs: number, isAlt: boolean): void {
    this.clear();
    const { onRange, onCompare } = this.wishes();
    (this.isComparing(isAlt) ? onCompare! : onRange)(Math.floor(fromMs), Math.ceil(toMs));
  }

  // The pointer moved, perhaps with a button down.
  dragged(): void {
    if (this.isByHand) return;
    const { left, width } = this.plot.select;
    this.showWindows(left, width, this.plot.cursor.event?.altKey === true);
  }

  private showWindows(left: number, width: number, isAlt: boolean): void {
    const isHidden = width <= LEAST_PX || !this.isComparing(isAlt);
    const { baseline = "", comparison = "" } = this.wishes().windowNames ?? {};
    const show = (box: HTMLElement, name: string, from: number, to: number) => {
      box.hidden = isHidden;
      box.textContent = name;
      box.style.left = `${from}px`;
      box.style.width = `${to - from}px`;
    };
    show(this.baseline, baseline, Math.max(0, left - width), left);
    show(this.comparison, comparison, left, left + width);
  }

  released(): void {
    const { left, width } = this.plot.select;
    if (this.isByHand || width <= LEAST_PX) return;
    const toMs = (x: number) => this.plot.posToVal(x, "x") * 1000;
    this.finish(toMs(left), toMs(left + width), this.plot.cursor.event?.altKey === true);
  }

  clear(): void {
    this.anchor = null;
    this.isByHand = false;
    this.showWindows(0, 0, false);
    this.plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  }

  // A finger along the chart; the chart itself follows a mouse only. Up and down, the page scrolls.
  private touched(down: PointerEvent): void {
    const { over } = this.plot;
    const left = over.getBoundingClientRect().left;
    const within = (event: PointerEvent) => Math.max(0, Math.min(over.clientWidth, event.clientX - left));
    const from = within(down);
    const ended = new AbortController();
    const on = (name: "pointermove" | "pointerup" | "pointercancel", run: (event: PointerEvent) => void) =>
      over.addEventListener(name, run, { signal: ended.signal });
    const toMs = (x: number) => this.plot.posToVal(x, "x") * 1000;

    over.setPointerCapture(down.pointerId);
    this.isByHand = true;
    on("pointermove", (event) => this.select(from, within(event), false));
    on("pointercancel", () => (ended.abort(), this.clear()));
    on("pointerup", (event) => {
      const [first, last] = [from, within(event)].sort((a, b) => a - b);
      ended.abort();
      this.clear();
      if (last! - first! > LEAST_PX) {
        this.finish(toMs(first!), toMs(last!), false);
      }
    });
  }

  private select(from: number, to: number, isAlt: boolean): void {
    const left = Math.min(from, to);
    const width = Math.abs(to - from);
    this.plot.setSelect({ left, width, top: 0, height: this.plot.over.clientHeight }, false);
    this.showWindows(left, width, isAlt);
  }

  private place(at: number): number {
    return this.plot.valToPos(this.timesMs[at]! / 1000, "x");
  }

  private moveTo(to: number, isSelecting: boolean, isAlt: boolean): void {
    this.isByHand = true;
    this.anchor = isSelecting ? (this.anchor ?? this.at) : null;
    this.at = to;
    const x = this.place(to);
    this.select(this.place(this.anchor ?? to), x, isAlt);
    this.plot.setCursor({ left: x, top: 0 });
  }

  pressed(event: KeyboardEvent): void {
    const to = pointOf(event.key, this.at, this.timesMs.length);
    if (event.ctrlKey || event.metaKey) {
      return;
    }
    if (to !== undefined) {
      this.moveTo(to, event.shiftKey, false);
    } else if (event.key === "Enter" && this.anchor !== null && this.anchor !== this.at) {
      const [from, until] = [this.anchor, this.at].sort((a, b) => a - b);
      this.finish(this.timesMs[from!]!, this.timesMs[until!]!, event.altKey);
    } else if (event.key === "Escape" && this.anchor !== null) {
      this.clear();
    } else if (event.key === "Escape" || event.key === "Backspace") {
      this.wishes().onReset?.();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
