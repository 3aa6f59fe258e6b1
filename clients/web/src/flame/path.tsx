// Above the picture: the transforms as chips, each removable, and the way from the root to the zoomed frame.
import type { ComponentChildren } from "preact";
import { boundedName } from "./names";
import { shownName } from "./facts";
import type { FlameTexts } from "./texts";
import type { Transform } from "./transforms";
import { ancestorsOf, pathOf, type FlameTree } from "./tree";
import type { FlameView } from "./FlameGraph";

interface Props {
  tree: FlameTree;
  zoomNode: number;
  view: FlameView;
  texts: FlameTexts;
  label: string;
  tools?: ComponentChildren;
  onView(view: FlameView): void;
}

function Chip({ text, remove, texts }: { text: string; remove(): void; texts: FlameTexts }) {
  return (
    <span class="flame-chip">
      <bdi>{text}</bdi>
      <button type="button" aria-label={texts.remove(text)} onClick={remove}>
        ✕
      </button>
    </span>
  );
}

/** A zoom that the changed tree does not have would end somewhere on its way: changes of the tree begin at the root. */
export function PathBar({ tree, zoomNode, view, texts, label, tools, onView }: Props) {
  const ancestors = ancestorsOf(tree, zoomNode);
  const without = (transform: Transform) =>
    onView({ ...view, zoom: [], transforms: view.transforms.filter((other) => other !== transform) });
  const path = (
    <nav class="flame-path" aria-label={`${label}: ${texts.path}`}>
      {view.transforms.map((transform, i) => (
        <Chip
          key={i}
          text={`${texts.transforms[transform.kind]}: ${boundedName(transform.name, 60)}`}
          remove={() => without(transform)}
          texts={texts}
        />
      ))}
      {view.flip && (
        <Chip text={texts.flipped} remove={() => onView({ ...view, zoom: [], flip: false })} texts={texts} />
      )}
      {ancestors.map((node) => (
        <button
          key={node}
          type="button"
          class="flame-crumb"
          aria-current={node === zoomNode ? "location" : undefined}
          onClick={() => onView({ ...view, zoom: pathOf(tree, node) })}
        >
          <bdi>{boundedName(shownName(tree, node, texts), 40)}</bdi>
        </button>
      ))}
    </nav>
  );
  return (
    <div class="flame-top">
      {path}
      {tools}
    </div>
  );
}
