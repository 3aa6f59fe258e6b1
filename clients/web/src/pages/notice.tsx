// What is wrong with an answer, at the place where the answer stands.
import { selector } from "../app/question";
import { texts } from "../app/settings";
import { SelectorCaret } from "../app/selector-caret";

export function Failure({ error }: { error?: Error }) {
  if (!error) {
    return null;
  }
  return (
    <div class="error" role="alert">
      <p>
        {texts.value.failed}: {error.message}
      </p>
      <SelectorCaret text={selector.value} error={error} />
    </div>
  );
}

export function Notes({ notes }: { notes: string[] }) {
  return (
    <>
      {notes.map((note) => (
        <p class="note" key={note}>
          {note}
        </p>
      ))}
    </>
  );
}
