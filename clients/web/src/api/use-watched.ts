// An answer about work of the server, asked for again while the work goes on. What shows it is not dimmed each time.
import { useEffect, useState } from "preact/hooks";
import { useAnswer, type Answer } from "./use-answer";

export function useWatched<T>(
  key: string,
  eachMs: number,
  isUnderWay: (value: T) => boolean,
  ask: (abort: AbortSignal) => Promise<T>,
): Answer<T> {
  const [tick, setTick] = useState(0);
  const answer = useAnswer(`${key} ${tick}`, ask);
  // A slow answer is waited for.
  const goesOn = !answer.isLoading && answer.value !== undefined && isUnderWay(answer.value);
  useEffect(() => {
    const timer = goesOn ? setTimeout(() => setTick(tick + 1), eachMs) : undefined;
    return () => clearTimeout(timer);
  }, [goesOn, tick]);
  return answer;
}
