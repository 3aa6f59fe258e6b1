// A menu at a place of the window: arrows move, Enter runs, Escape closes and gives the focus back.
import { useLayoutEffect, useRef } from "preact/hooks";

export interface MenuItem {
  name: string;
  run(): void;
}

interface Props {
  items: MenuItem[];
  x: number;
  y: number;
  label: string;
  onClose(): void;
}

export function Menu({ items, x, y, label, onClose }: Props) {
  const box = useRef<HTMLDivElement>(null);

  // Before the next key arrives.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const menu = box.current!;
    // Within the window, wherever the pointer was.
    menu.style.left = `${Math.max(4, Math.min(x, innerWidth - menu.offsetWidth - 4))}px`;
    menu.style.top = `${Math.max(4, Math.min(y, innerHeight - menu.offsetHeight - 4))}px`;
    menu.querySelector("button")!.focus();
    const outside = (event: PointerEvent) => !menu.contains(event.target as Node) && onClose();
    document.addEventListener("pointerdown", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      before?.focus();
    };
  }, []);

  const onKey = (event: KeyboardEvent) => {
    const buttons = [...box.current!.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Escape" || event.key === "Tab") {
      onClose();
    } else if (step !== 0) {
      buttons[(at + step + buttons.length) % buttons.length].focus();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="menu" role="menu" aria-label={label} ref={box} onKeyDown={onKey}>
      {items.map((item) => (
        <button
          key={item.name}
          type="button"
          role="menuitem"
          onClick={() => {
            onClose();
            item.run();
          }}
        >
          {item.name}
        </button>
      ))}
    </div>
  );
}
