// What most people want to see first, as the command line chooses it: processor time; some clients count samples under
// its name.
const PREFERRED_TYPES = ["process_cpu:cpu:nanoseconds:", "process_cpu:cpu:", "wall:cpu:"];

export function preferredType<T extends { ID: string }>(types: T[]): T | undefined {
  for (const start of PREFERRED_TYPES) {
    const found = types.find((type) => type.ID.startsWith(start));
    if (found) {
      return found;
    }
  }
  return types[0];
}
