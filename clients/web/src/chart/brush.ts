// Selects a part of a chart by dragging or by keys. With Alt, or while a comparison is chosen, it is a window to compare,
// and the time before it is marked as the baseline.
import type uPlot from "uplot";

interface Wishes {
  isComparing?: boolean;
  onRange(fromMs: number, toMs: number): void;
  onCompare?(fromMs: number, toMs: number): void;
  onReset(): void;
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
  private isByKeys = false;
  private at: number;
  // Where a selection by keys began.
  private anchor: number | null = null;

  constructor(
    private readonly plot: uPlot,
    private readonly timesMs: number[],
    private readonly wishes: () => Wishes,
  ) {
    this.at = timesMs.length - 1;
    this.baseline.className = "brush-baseline";
    this.baseline.hidden = true;
    plot.over.append(this.baseline);
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
    if (this.isByKeys) return;
    const { left, width } = this.plot.select;
    this.showBaseline(left, width, this.plot.cursor.event?.altKey === true);
  }

  private showBaseline(left: number, width: number, isAlt: boolean): void {
    this.baseline.hidden = width <= LEAST_PX || !this.isComparing(isAlt);
    this.baseline.style.left = `${Math.max(0, left - width)}px`;
    this.baseline.style.width = `${Math.min(width, left)}px`;
  }

  released(): void {
    const { left, width } = this.plot.select;
    if (this.isByKeys || width <= LEAST_PX) return;
    const toMs = (x: number) => this.plot.posToVal(x, "x") * 1000;
    this.finish(toMs(left), toMs(left + width), this.plot.cursor.event?.altKey === true);
  }

  clear(): void {
    this.anchor = null;
    this.isByKeys = false;
    this.baseline.hidden = true;
    this.plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  }

  private place(at: number): number {
    return this.plot.valToPos(this.timesMs[at]! / 1000, "x");
  }

  private moveTo(to: number, isSelecting: boolean, isAlt: boolean): void {
    this.isByKeys = true;
    this.anchor = isSelecting ? (this.anchor ?? this.at) : null;
    this.at = to;
    const from = this.place(this.anchor ?? to);
    const x = this.place(to);
    const left = Math.min(from, x);
    const width = Math.abs(x - from);
    this.plot.setSelect({ left, width, top: 0, height: this.plot.over.clientHeight }, false);
    this.showBaseline(left, width, isAlt);
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
      this.wishes().onReset();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
