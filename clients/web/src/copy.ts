// Text to the clipboard. Browsers offer its interface to safe origins only, and many a hearthd is asked over plain HTTP.

export function copyText(text: string): Promise<void> {
  return navigator.clipboard ? navigator.clipboard.writeText(text) : copySelection(text);
}

/** Selects the text and has the browser copy the selection, as browsers without that interface do. */
async function copySelection(text: string): Promise<void> {
  const before = document.activeElement as HTMLElement | null;
  const box = document.createElement("textarea");
  box.value = text;
  box.style.position = "fixed";
  box.style.opacity = "0";
  document.body.append(box);
  box.select();
  const isCopied = document.execCommand("copy");
  box.remove();
  before?.focus();
  if (!isCopied) {
    throw new Error("this browser copies nothing over plain HTTP");
  }
}
