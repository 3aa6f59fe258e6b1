// Every text that becomes part of the page passes here, wherever it comes from: characters that are not seen, or that
// turn the text around them, are written out. No page has to remember it.
import { options, type VNode } from "preact";
import { visibleText } from "../flame/names";

const ATTRIBUTES = ["title", "aria-label", "placeholder", "alt"];

function visible(child: unknown): unknown {
  if (typeof child === "string") {
    return visibleText(child);
  }
  return Array.isArray(child) ? child.map(visible) : child;
}

const before = options.vnode;
options.vnode = (vnode: VNode) => {
  if (typeof vnode.type === "string") {
    const props = vnode.props as Record<string, unknown>;
    // The value of an option is its text unless it has another: what is chosen stays what it is.
    if (vnode.type === "option" && props.value === undefined && typeof props.children === "string") {
      props.value = props.children;
    }
    props.children = visible(props.children);
    for (const name of ATTRIBUTES) {
      if (props[name] !== undefined) props[name] = visible(props[name]);
    }
  }
  before?.(vnode);
};
