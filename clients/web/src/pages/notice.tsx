// What is wrong with an answer, at the place where the answer stands.
import { selector } from "../app/question";
import { texts } from "../app/settings";
import { offsetOf, pointer } from "../app/pointer";

export function Failure({ error }: { error?: Error }) {
  if (!error) {
    return null;
  }
  const offset = offsetOf(error.message);
  return (
    <div class="error" role="alert">
      <p>
        {texts.value.failed}: {error.message}
      </p>
      {offset !== undefined && <pre class="code">{selector.value + "\n" + pointer(selector.value, offset)}</pre>}
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
