// Work that the first picture does not need.

/** Runs when the browser has nothing else to do, at the latest after half a second; the result takes it back. */
export function whenIdle(run: () => void): () => void {
  // Safari has no such callback.
  if (!("requestIdleCallback" in window)) {
    const timer = setTimeout(run, 50);
    return () => clearTimeout(timer);
  }
  const request = requestIdleCallback(run, { timeout: 500 });
  return () => cancelIdleCallback(request);
}
