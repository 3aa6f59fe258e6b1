// What is wrong with an answer, at the place where the answer stands.
import { selector } from "../app/question";
import { Said } from "../app/said";
import { texts } from "../app/settings";
import { SelectorCaret } from "../app/selector-caret";

export function Failure({ error }: { error?: Error & { code?: string; requestId?: string } }) {
  if (!error) {
    return null;
  }
  const { failed, failures, requestId } = texts.value;
  return (
    <div class="error" role="alert">
      <p>
        {failures[error.code ?? ""] ?? failed}: <Said text={error.message} />
        {error.requestId && (
          <small class="muted">
            {" "}
            {requestId}: <span class="code">{error.requestId}</span>
          </small>
        )}
      </p>
      <SelectorCaret text={selector.value} error={error} />
    </div>
  );
}

// Notes of the server begin with a small letter, and are sentences of their own here.
export function Notes({ notes }: { notes: string[] }) {
  return (
    <>
      {notes.filter(Boolean).map((note) => (
        <p class="note said" key={note}>
          <Said text={note} />
        </p>
      ))}
    </>
  );
}
