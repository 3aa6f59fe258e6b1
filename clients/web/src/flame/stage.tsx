// The canvas, its pointer and its keys. Painting is by animation frames, at most one each; only the numbers around the
// picture are rendered again when the pointer moves.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { copyText } from "../copy";
import { LIGHT } from "./colours";
import { Tooltip } from "./facts";
import { boxAt, boxOf, CULLED } from "./layout";
import { moveCursor } from "./navigate";
import { LARGEST_CANVAS, paint, paintRail } from "./paint";
import type { Scene } from "./scene";
import type { FlameTexts } from "./texts";
import { nameOf, type FlameTree } from "./tree";
import { Twin } from "./twin";
import { zoomStart, type Stretch } from "./zoom";

export interface MenuRequest {
  node: number;
  tree: FlameTree;
  name: string;
  /** Of the window. */
  x: number;
  y: number;
}

interface Props {
  scene: Scene;
  rowHeight: number;
  hovered: number;
  outlined: string | null;
  label: string;
  texts: FlameTexts;
  /** Tells how many samples a frame had. */
  counts?: FlameTree;
  places?: readonly string[];
  onWidth(width: number): void;
  onHover(box: number): void;
  onZoom(node: number): void;
  onMenu(request: MenuRequest): void;
}

const ZOOM_MS = 120;
const TOOLTIP_MS = 80;
const LONG_PRESS_MS = 500;
const RAIL_WIDTH = 8;
const isPaper = matchMedia("print");
const STILL: Stretch = { scale: 1, offset: 0 };

let lastTwin = 0;

export function Stage(props: Props) {
  const { scene, rowHeight, texts } = props;
  const { layout, tree } = scene;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const rail = useRef<HTMLCanvasElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const [twinId] = useState(() => `flame-twin-${++lastTwin}`);
  const [cursor, setCursor] = useState(0);
  const [isFocused, setFocused] = useState(false);
  // The cursor is shown to those who use it: a click leaves no frame around the picture.
  const [hasKeys, setKeys] = useState(true);
  const isCursorShown = isFocused && hasKeys;
  const [tip, setTip] = useState<{ box: number; x: number; y: number } | null>(null);
  const tipTimer = useRef(0);
  const pressTimer = useRef(0);
  const wasLongPress = useRef(false);
  // The pointer is elsewhere, and Shift keeps what it pointed at.
  const isHeld = useRef(false);
  const zooming = useRef<{ from: Stretch; begin: number } | null>(null);
  const previous = useRef(scene);
  const painting = useRef(0);

  // ---- painting ----

  const outlinedName = (): number => {
    const node = props.hovered >= 0 ? layout.node[props.hovered]! : -1;
    if (node > 0) return tree.name[node]!;
    if (props.outlined !== null) return tree.names.indexOf(props.outlined);
    return isCursorShown && cursor > 0 ? tree.name[cursor]! : -1;
  };

  const draw = (isWhole = isPaper.matches, stretch = STILL) => {
    const box = scroller.current;
    const context = canvas.current?.getContext("2d", { alpha: false });
    if (!box || !canvas.current || !context) return;
    const ratio = devicePixelRatio || 1;
    const width = box.clientWidth;
    const height = isWhole ? Math.min(layout.rows * rowHeight, LARGEST_CANVAS / ratio) : box.clientHeight;
    fitCanvas(canvas.current, width, height, ratio);
    // Paper is light, and ink is dear.
    paint(context, isWhole ? scene.inTheme(LIGHT) : scene, {
      width,
      height,
      ratio,
      top: isWhole ? 0 : box.scrollTop,
      rowHeight,
      ...stretch,
      outlinedName: outlinedName(),
      cursor: isCursorShown ? cursor : -1,
    });
    const ticks = rail.current?.getContext("2d");
    if (rail.current && ticks) {
      fitCanvas(rail.current, RAIL_WIDTH, height, ratio);
      paintRail(ticks, scene, RAIL_WIDTH, height, ratio);
    }
  };
  const latestDraw = useRef(draw);
  latestDraw.current = draw;
  const drawSoon = () => {
    cancelAnimationFrame(painting.current);
    painting.current = requestAnimationFrame((now) => {
      latestDraw.current(undefined, stretchAt(now));
      if (zooming.current) drawSoon();
    });
  };
  /** How far a zoom has come; it ends with the picture as it is. */
  const stretchAt = (now: number): Stretch => {
    if (!zooming.current) return STILL;
    const { from, begin } = zooming.current;
    const share = Math.max(0, (now - begin) / ZOOM_MS);
    if (share >= 1) {
      zooming.current = null;
      return STILL;
    }
    return { scale: from.scale + (1 - from.scale) * share, offset: from.offset * (1 - share) };
  };

  useLayoutEffect(() => {
    drawSoon();
  });
  // The observer reports after the first frame, which would be drawn without a width and then once more.
  useLayoutEffect(() => props.onWidth(scroller.current!.clientWidth), []);
  useEffect(() => {
    const box = scroller.current!;
    const observer = new ResizeObserver(() => {
      props.onWidth(box.clientWidth);
      if (!hasSize(canvas.current!, box.clientWidth, box.clientHeight, devicePixelRatio || 1)) drawSoon();
    });
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  // On paper nothing can be scrolled.
  useEffect(() => {
    const drawWhole = () => latestDraw.current(true);
    const drawVisible = () => latestDraw.current();
    addEventListener("beforeprint", drawWhole);
    addEventListener("afterprint", drawVisible);
    return () => {
      removeEventListener("beforeprint", drawWhole);
      removeEventListener("afterprint", drawVisible);
    };
  }, []);

  // ---- zoom: the old picture grows or shrinks into the new one ----

  useLayoutEffect(() => {
    const from = zoomStart(previous.current.layout, layout, tree);
    const isSameTree = previous.current.tree === tree;
    previous.current = scene;
    setTip(null);
    if (!from || !isSameTree || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      return;
    }
    zooming.current = { from, begin: performance.now() };
    return () => {
      zooming.current = null;
    };
  }, [layout]);

  useEffect(() => setCursor(layout.zoomNode), [tree, layout.zoomNode]);

  // ---- pointer ----

  const boxUnder = (event: MouseEvent): number => {
    const area = scroller.current!.getBoundingClientRect();
    const y = event.clientY - area.top + scroller.current!.scrollTop;
    return boxAt(layout, event.clientX - area.left, Math.floor(y / rowHeight));
  };
  const nodeOf = (box: number): number => {
    if (box < 0) return -1;
    return layout.node[box] === CULLED ? layout.parent[box]! : layout.node[box]!;
  };
  const openMenu = (box: number, x: number, y: number) => {
    const node = nodeOf(box);
    if (node >= 0) props.onMenu({ node, tree, name: nameOf(tree, node), x, y });
  };
  const move = (event: PointerEvent) => {
    // Shift holds what is shown, so that it can be read and compared.
    isHeld.current = false;
    if (event.shiftKey) return;
    const box = boxUnder(event);
    if (box === props.hovered) return;
    props.onHover(box);
    setTip(null);
    clearTimeout(tipTimer.current);
    if (box >= 0 && event.pointerType !== "touch") {
      tipTimer.current = window.setTimeout(
        () => setTip({ box, ...tipPlace(event, scroller.current!, rowHeight) }),
        TOOLTIP_MS,
      );
    }
  };
  const forget = () => {
    setTip(null);
    props.onHover(-1);
  };
  const leave = (event: PointerEvent) => {
    clearTimeout(tipTimer.current);
    clearTimeout(pressTimer.current);
    isHeld.current = event.shiftKey;
    if (!event.shiftKey) forget();
  };
  const latestForget = useRef(forget);
  latestForget.current = forget;
  useEffect(() => {
    const release = (event: KeyboardEvent) => {
      if (event.key === "Shift" && isHeld.current) {
        isHeld.current = false;
        latestForget.current();
      }
    };
    document.addEventListener("keyup", release);
    return () => document.removeEventListener("keyup", release);
  }, []);
  const press = (event: PointerEvent) => {
    wasLongPress.current = false;
    if (event.pointerType !== "touch") return;
    const box = boxUnder(event);
    props.onHover(box);
    pressTimer.current = window.setTimeout(() => {
      wasLongPress.current = true;
      openMenu(box, event.clientX, event.clientY);
    }, LONG_PRESS_MS);
  };
  const focusGrid = () => {
    setKeys(false);
    if (document.activeElement !== grid.current) grid.current?.focus({ preventScroll: true });
  };
  // The browser would take the focus away with the press, and the click would have to bring it back. A press of the
  // scroll bar has another target.
  const holdFocus = (event: MouseEvent) => {
    if (event.target === scroller.current || event.button !== 0) return;
    event.preventDefault();
    focusGrid();
  };
  const click = (event: MouseEvent) => {
    clearTimeout(pressTimer.current);
    focusGrid();
    const node = nodeOf(boxUnder(event));
    if (node >= 0 && !wasLongPress.current) {
      setCursor(node);
      props.onZoom(node);
    }
  };
  const menu = (event: MouseEvent) => {
    event.preventDefault();
    // The browser's own long press comes here too.
    if (!wasLongPress.current) openMenu(boxUnder(event), event.clientX, event.clientY);
    clearTimeout(pressTimer.current);
  };
  useEffect(
    () => () => {
      clearTimeout(tipTimer.current);
      clearTimeout(pressTimer.current);
    },
    [],
  );

  // ---- keys ----

  const showCursor = (node: number) => {
    const box = scroller.current!;
    const top = tree.depth[node]! * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
  };
  const pressKey = (event: KeyboardEvent) => {
    setKeys(true);
    const isCopy = (event.ctrlKey || event.metaKey) && event.key === "c";
    if (isCopy) {
      void copyText(nameOf(tree, cursor));
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moved = moveCursor(layout, tree, scene.matches, cursor, event.key);
    if (moved !== null) {
      setCursor(moved);
      props.onHover(boxOf(layout, tree, moved));
      showCursor(moved);
    } else if (event.key === "Enter") {
      props.onZoom(cursor);
    } else if (event.key === "Escape" || event.key === "0") {
      props.onZoom(0);
    } else if (event.key === "Backspace") {
      props.onZoom(Math.max(0, tree.parent[layout.zoomNode]!));
    } else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) {
      const box = Math.max(0, boxOf(layout, tree, cursor));
      const area = scroller.current!.getBoundingClientRect();
      openMenu(
        box,
        area.left + layout.x[box]!,
        area.top + (tree.depth[cursor]! + 1) * rowHeight - scroller.current!.scrollTop,
      );
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const described = Math.min(cursor, tree.n - 1);
  // The same element is not compared again when the pointer moves: it has hundreds of nodes.
  const twin = useMemo(
    () => <Twin tree={tree} cursor={described} unit={scene.unit} texts={texts} label={props.label} id={twinId} gridRef={grid} />,
    [tree, described, scene.unit, texts, props.label],
  );

  return (
    <div
      class={hasKeys ? "flame-stage" : "flame-stage by-pointer"}
      style={{ "--rows": `${layout.rows * rowHeight}px` }}
      onKeyDown={pressKey}
      onFocusIn={() => setFocused(true)}
      onFocusOut={() => {
        setFocused(false);
        setKeys(true);
      }}
    >
      <div
        ref={scroller}
        class="flame-scroll"
        onScroll={drawSoon}
        onPointerMove={move}
        onPointerLeave={leave}
        onPointerDown={press}
        onMouseDown={holdFocus}
        onPointerUp={() => clearTimeout(pressTimer.current)}
        onPointerCancel={leave}
        onClick={click}
        onContextMenu={menu}
      >
        <div class="flame-height" style={{ height: `${layout.rows * rowHeight}px` }}>
          <canvas ref={canvas} class="flame-canvas" aria-hidden="true" />
        </div>
      </div>
      {scene.matches && <canvas ref={rail} class="flame-rail" aria-hidden="true" />}
      {twin}
      {tip && tip.box < layout.n && (
        <Tooltip
          tree={tree}
          layout={layout}
          box={tip.box}
          unit={scene.unit}
          texts={texts}
          counts={props.counts}
          places={props.places}
          x={tip.x}
          y={tip.y}
        />
      )}
    </div>
  );
}

function hasSize(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): boolean {
  return canvas.width === Math.round(width * ratio) && canvas.height === Math.round(height * ratio);
}

/** Setting a canvas' size clears it, also to the same size. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  if (!hasSize(canvas, width, height, ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
}

/** Below the row under the pointer, within the picture's width. */
function tipPlace(event: MouseEvent, box: HTMLElement, rowHeight: number): { x: number; y: number } {
  const area = box.getBoundingClientRect();
  const inside = event.clientY - area.top + box.scrollTop;
  const y = (Math.floor(inside / rowHeight) + 1) * rowHeight - box.scrollTop + 6;
  return { x: Math.max(0, Math.min(event.clientX - area.left + 12, area.width - 440)), y };
}
