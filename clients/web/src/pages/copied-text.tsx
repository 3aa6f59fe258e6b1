// A text that people take away: copied by a button that says for a moment that it did.
import { useState } from "preact/hooks";
import { texts } from "../app/settings";
import { copyText } from "../copy";

const COPIED_MS = 2000;

interface Props {
  // What is copied, or how it is made when the button is pressed.
  text: string | (() => string);
  name?: string;
  hint?: string;
  isPrimary?: boolean;
}

export function CopyButton({ text, name, hint, isPrimary }: Props) {
  const [isCopied, setIsCopied] = useState(false);
  const words = texts.value.empty;
  const copy = async () => {
    await copyText(typeof text === "string" ? text : text());
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), COPIED_MS);
  };
  return (
    <button type="button" class={isPrimary ? "primary" : ""} title={hint} aria-live="polite" onClick={() => void copy()}>
      {isCopied ? words.copied : (name ?? words.copy)}
    </button>
  );
}
