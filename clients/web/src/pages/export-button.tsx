// A button that opens the list of files in which a flame graph can be taken away.
import { useState } from "preact/hooks";
import { texts } from "../app/settings";
import type { FlameExports } from "../flame/FlameGraph";
import { saveFile } from "../save";
import { Menu } from "./menu";

const text = (content: string, type: string) => new Blob([content], { type });

type Form = [name: string, ending: string, make: (from: FlameExports, title: string, type: string) => Blob | Promise<Blob>];

const FORMS: Form[] = [
  ["PNG", ".png", (made) => made.png()],
  ["SVG", ".svg", (made, title) => text(made.svg(title), "image/svg+xml")],
  ["HTML", ".html", async (made, title, type) => text(await made.html(title, type), "text/html")],
  ["pprof", ".pb.gz", (made, _, type) => made.pprof(type)],
  ["collapsed", ".txt", (made) => text(made.collapsed(), "text/plain")],
  ["speedscope", ".speedscope.json", (made, title) => text(made.speedscope(title), "application/json")],
];

interface Props {
  made: FlameExports;
  /** Of the picture, and of the file as far as names of files allow it. */
  title: string;
  /** What was measured. */
  type: string;
}

export function ExportButton({ made, title, type }: Props) {
  const [place, setPlace] = useState<{ x: number; y: number } | null>(null);
  const words = texts.value.profile;
  const name = title.replace(/[^\w.-]+/g, "_").slice(0, 100) || "profile";
  const items = FORMS.map(([form, ending, make]) => ({
    name: form,
    run: async () => saveFile(await make(made, title, type), name + ending),
  }));
  return (
    <>
      <button
        type="button"
        class="export"
        aria-haspopup="menu"
        aria-expanded={place !== null}
        aria-label={`${words.export}: ${title}`}
        onClick={(event) => {
          const { left, bottom } = event.currentTarget.getBoundingClientRect();
          setPlace({ x: left, y: bottom + 4 });
        }}
      >
        {words.export} ▾
      </button>
      {place && <Menu items={items} {...place} label={words.export} onClose={() => setPlace(null)} />}
    </>
  );
}
