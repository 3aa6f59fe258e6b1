// Asks a question that changes faster than the server answers, for example while a threshold is dragged. One request is
// on its way at a time. When its answer has arrived, the latest question follows; those between are skipped.
import { useEffect, useRef, useState } from "preact/hooks";
import { refreshes } from "./connect";
import type { Answer } from "./use-answer";

export function useLatest<T>(key: string | null, ask: (abort: AbortSignal) => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ isLoading: key !== null });
  const latest = useRef({ key, ask });
  const asked = useRef<string | null>(null);
  const abort = useRef<AbortController | null>(null);
  latest.current = { key, ask };
  const round = `${refreshes.value} ${key}`;

  const next = () => {
    const { key: wanted, ask: how } = latest.current;
    const question = `${refreshes.value} ${wanted}`;
    if (wanted === null || asked.current === question || abort.current) {
      return;
    }
    asked.current = question;
    const own = new AbortController();
    abort.current = own;
    const finish = (change: (old: Answer<T>) => Answer<T>) => {
      if (!own.signal.aborted) {
        abort.current = null;
        setAnswer(change);
        next();
      }
    };
    setAnswer((old) => ({ ...old, isLoading: true }));
    how(own.signal).then(
      (value) => finish(() => ({ value, isLoading: false })),
      (error: Error) => finish((old) => ({ value: old.value, error, isLoading: false })),
    );
  };
  useEffect(next, [round]);
  useEffect(() => () => abort.current?.abort(), []);
  return answer;
}
