// Moves a cursor over a chart, and selects a part of it by a mouse, a finger or keys. With Alt, or while a comparison is
// chosen, the part is a window to compare, and the time before it is its baseline.
import { useEffect, useRef, useState } from "preact/hooks";
import { nearestTime, toMs, type Frame } from "./line-path";

interface Wishes {
  isComparing?: boolean;
  onRange(fromMs: number, toMs: number): void;
  onCompare?(fromMs: number, toMs: number): void;
  onReset?(): void;
  // A click or Enter at a place where nothing is selected.
  onOpen?(): void;
}

export interface Chosen {
  fromMs: number;
  toMs: number;
  isCompared: boolean;
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

type Handlers = Record<"onPointerDown" | "onPointerMove" | "onPointerUp" | "onPointerCancel" | "onPointerLeave", (event: PointerEvent) => void>;

interface Brush {
  // The place of the cursor among the times, and whether keys moved it there.
  at: number | null;
  isByKey: boolean;
  chosen: Chosen | null;
  // For the area of the lines.
  pointer: Handlers;
  onKeyDown(event: KeyboardEvent): void;
  clear(): void;
}

const sorted = (a: number, b: number): [number, number] => (a < b ? [a, b] : [b, a]);

export function useBrush(frame: Frame, timesMs: readonly number[], wishes: Wishes): Brush {
  const [cursor, setCursor] = useState<{ at: number; isByKey: boolean } | null>(null);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  // Where a selection by keys began.
  const [anchor, setAnchor] = useState<number | null>(null);
  const pressedX = useRef<number | null>(null);
  const at = cursor && cursor.at < timesMs.length ? cursor.at : null;

  const isCompared = (isAlt: boolean) => wishes.onCompare !== undefined && (isAlt || wishes.isComparing === true);
  const clear = () => {
    setChosen(null);
    setAnchor(null);
    pressedX.current = null;
  };
  const moveTo = (to: number, isByKey: boolean) => setCursor({ at: to, isByKey });
  useEffect(clear, [timesMs]);
  const finish = (fromMs: number, untilMs: number, isAlt: boolean) => {
    clear();
    (isCompared(isAlt) ? wishes.onCompare! : wishes.onRange)(Math.floor(fromMs), Math.ceil(untilMs));
  };

  const xOf = (event: PointerEvent) => {
    const { left } = (event.currentTarget as Element).getBoundingClientRect();
    return Math.max(0, Math.min(frame.width, event.clientX - left));
  };
  const dragged = (x: number): [number, number] | null => {
    const from = pressedX.current;
    return from !== null && Math.abs(x - from) > LEAST_PX ? sorted(from, x) : null;
  };
  const pointer: Handlers = {
    onPointerDown: (event) => {
      if (event.button === 0) {
        clear();
        pressedX.current = xOf(event);
        moveTo(nearestTime(timesMs, toMs(frame, pressedX.current)), false);
      }
    },
    onPointerMove: (event) => {
      const x = xOf(event);
      const range = dragged(x);
      moveTo(nearestTime(timesMs, toMs(frame, x)), false);
      if (range) {
        // A click on what lies above the chart is not captured before it becomes a drag.
        (event.currentTarget as Element).setPointerCapture(event.pointerId);
        setChosen({ fromMs: toMs(frame, range[0]), toMs: toMs(frame, range[1]), isCompared: isCompared(event.altKey) });
      }
    },
    onPointerUp: (event) => {
      const range = dragged(xOf(event));
      if (range) {
        finish(toMs(frame, range[0]), toMs(frame, range[1]), event.altKey);
      } else if (pressedX.current !== null) {
        clear();
        wishes.onOpen?.();
      }
    },
    onPointerCancel: clear,
    // A finger leaves when it is lifted; what it touched stays to be read.
    onPointerLeave: (event) => event.pointerType === "mouse" && setCursor(null),
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const to = pointOf(event.key, at ?? timesMs.length - 1, timesMs.length);
    if (event.ctrlKey || event.metaKey) {
      return;
    }
    if (to !== undefined && timesMs.length > 0) {
      const first = event.shiftKey ? (anchor ?? at ?? timesMs.length - 1) : null;
      setAnchor(first);
      moveTo(to, true);
      const [from, until] = sorted(first ?? to, to);
      setChosen(first === null ? null : { fromMs: timesMs[from]!, toMs: timesMs[until]!, isCompared: isCompared(false) });
    } else if (event.key === "Enter" && chosen && chosen.fromMs < chosen.toMs) {
      finish(chosen.fromMs, chosen.toMs, event.altKey);
    } else if (event.key === "Enter" && at !== null && wishes.onOpen) {
      wishes.onOpen();
    } else if (event.key === "Escape" && chosen) {
      clear();
    } else if ((event.key === "Escape" || event.key === "Backspace") && wishes.onReset) {
      wishes.onReset();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return { at, isByKey: cursor?.isByKey === true, chosen, pointer, onKeyDown, clear: () => (clear(), setCursor(null)) };
}
