// Calls that change something: the refusal is shown where the button is, and everything is asked again afterwards.
import { useState } from "preact/hooks";
import { call, refreshes } from "../api/connect";
import { pageTexts } from "../app/page-texts";

export interface Sending {
  error?: Error;
  isSending: boolean;
  // The answer; undefined where the server refused.
  send<T>(method: string, message: object): Promise<T | undefined>;
}

export function useSending(): Sending {
  const [error, setError] = useState<Error>();
  const [isSending, setIsSending] = useState(false);
  const send = async <T,>(method: string, message: object): Promise<T | undefined> => {
    setIsSending(true);
    try {
      const answer = await call<T>(method, message);
      setError(undefined);
      refreshes.value++;
      return answer;
    } catch (refusal) {
      setError(refusal as Error);
      return undefined;
    } finally {
      setIsSending(false);
    }
  };
  return { error, isSending, send };
}

interface ConfirmProps {
  label: string;
  // What the button says the second time.
  really?: string;
  // Names the object for those who do not see the row.
  of: string;
  disabled?: boolean;
  onConfirm(): void;
}

// For what cannot be undone: the first press arms the button, the second one acts.
export function Confirm({ label, really = pageTexts.value.admin.really, of, disabled, onConfirm }: ConfirmProps) {
  const [isArmed, setIsArmed] = useState(false);
  const press = () => {
    if (isArmed) {
      onConfirm();
    }
    setIsArmed(!isArmed);
  };
  return (
    <button
      type="button"
      class={isArmed ? "primary" : ""}
      disabled={disabled}
      aria-label={`${isArmed ? really : label}: ${of}`}
      onClick={press}
      onBlur={() => setIsArmed(false)}
      onKeyDown={(event) => event.key === "Escape" && setIsArmed(false)}
    >
      {isArmed ? really : label}
    </button>
  );
}
