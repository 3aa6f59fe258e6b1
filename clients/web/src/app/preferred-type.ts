// What most people want to see first, as the command line chooses it: processor time, then what `go tool pprof` shows
// first of a heap and of waiting. Some clients count samples under the name of processor time. A type that no series of
// the selector has is shown only if there is no other.
const PREFERRED_TYPES = [
  "process_cpu:cpu:nanoseconds:", "process_cpu:cpu:", "wall:cpu:", "memory:inuse_space:", "mutex:delay:", "block:delay:",
];

export function preferredType<T extends { ID: string; isOutside?: boolean }>(types: T[]): T | undefined {
  const inside = types.filter((type) => !type.isOutside);
  const candidates = inside.length > 0 ? inside : types;
  for (const start of PREFERRED_TYPES) {
    const found = candidates.find((type) => type.ID.startsWith(start));
    if (found) {
      return found;
    }
  }
  return candidates[0];
}
