// A text that people take away: selected at once, copied by a button that says that it did.
import { useState } from "preact/hooks";
import { texts } from "../app/settings";

export function CopyButton({ text, isPrimary }: { text: string; isPrimary?: boolean }) {
  const [copied, setCopied] = useState("");
  const words = texts.value.empty;
  return (
    <button
      type="button"
      class={isPrimary ? "primary" : ""}
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(text))}
    >
      {copied === text ? words.copied : words.copy}
    </button>
  );
}
