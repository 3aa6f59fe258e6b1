// An answer of the server for a component. The old answer stays while the next one is on its way.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { ApiError, noteError, notesFor, refreshes } from "./connect";

export interface Answer<T> {
  value?: T;
  error?: Error;
  isLoading: boolean;
}

const notesByAnswer = signal<ReadonlyMap<AbortSignal, string[]>>(new Map());

// What the answers lack that components show now; the frame says it.
export function shownNotes(): string[] {
  return [...new Set([...notesByAnswer.value.values()].flat())];
}

function setNotes(of: AbortSignal, notes: string[]): void {
  if (notes.length > 0 || notesByAnswer.value.has(of)) {
    const kept = new Map(notesByAnswer.value);
    kept.delete(of);
    notesByAnswer.value = notes.length > 0 ? kept.set(of, notes) : kept;
  }
}

// key: what the question depends on; null asks nothing.
export function useAnswer<T>(key: string | null, ask: (abort: AbortSignal) => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T> & { key: string | null }>({ key, isLoading: key !== null });
  const round = refreshes.value;

  useEffect(() => {
    if (key === null) {
      setAnswer({ key, isLoading: false });
      return;
    }
    const abort = new AbortController();
    setAnswer((old) => ({ key, value: old.value, isLoading: true }));
    ask(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) {
          setAnswer({ key, value, isLoading: false });
          setNotes(abort.signal, notesFor(abort.signal));
        }
      },
      (error: Error & { status?: number; code?: string }) => {
        if (!abort.signal.aborted) {
          noteError(error instanceof ApiError ? error : new ApiError(error.status ?? 0, error.code ?? "", error.message));
          setAnswer((old) => ({ key, value: old.value, error, isLoading: false }));
        }
      },
    );
    return () => {
      abort.abort();
      setNotes(abort.signal, []);
    };
  }, [key, round]);

  // Effects run after the frame in which the question changed: that frame shows already that an answer is awaited.
  return answer.key === key ? answer : { ...answer, isLoading: key !== null };
}
