// An answer of the server for a component. The old answer stays while the next one is on its way.
import { useEffect, useState } from "preact/hooks";
import { ApiError, noteError, refreshes } from "./connect";

export interface Answer<T> {
  value?: T;
  error?: Error;
  isLoading: boolean;
}

// key: what the question depends on; null asks nothing.
export function useAnswer<T>(key: string | null, ask: (abort: AbortSignal) => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ isLoading: key !== null });
  const round = refreshes.value;

  useEffect(() => {
    if (key === null) {
      setAnswer({ isLoading: false });
      return;
    }
    const abort = new AbortController();
    setAnswer((old) => ({ value: old.value, isLoading: true }));
    ask(abort.signal).then(
      (value) => !abort.signal.aborted && setAnswer({ value, isLoading: false }),
      (error: Error & { status?: number; code?: string }) => {
        if (!abort.signal.aborted) {
          noteError(error instanceof ApiError ? error : new ApiError(error.status ?? 0, error.code ?? "", error.message));
          setAnswer((old) => ({ value: old.value, error, isLoading: false }));
        }
      },
    );
    return () => abort.abort();
  }, [key, round]);

  return answer;
}
