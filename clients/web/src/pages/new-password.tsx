// A password to be set; browsers offer to make one.
const SHORTEST = 12;

export function NewPassword({ label }: { label: string }) {
  return (
    <input
      name="password"
      type="password"
      class="middle"
      required
      minLength={SHORTEST}
      autocomplete="new-password"
      aria-label={label}
      placeholder={label}
    />
  );
}
