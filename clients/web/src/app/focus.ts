// For ref: the field that a button has opened takes the focus, once, because the function stays the same.
export function takeFocus(element: HTMLElement | null): void {
  element?.focus();
}
