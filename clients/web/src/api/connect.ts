// RPCs by Connect as JSON. A refusal for lack of a session shows the log-in instead of the page.
import { signal } from "@preact/signals";
import { Reader } from "../flame/protobuf";
import { notesOf } from "../notes";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    // The byte of a label selector at which the server stopped reading it.
    readonly selectorOffset?: number,
    readonly requestId = "",
  ) {
    super(message);
  }
}

interface ErrorDetail {
  type?: string;
  value?: string;
}

// The offset in the details of an error: hearth.v1.SelectorError in base64.
export function selectorOffsetOf(details: ErrorDetail[] = []): number | undefined {
  const value = details.find(({ type }) => type === "hearth.v1.SelectorError")?.value;
  if (value === undefined) {
    return undefined;
  }
  const message = new Reader(Uint8Array.from(atob(value), (c) => c.charCodeAt(0)));
  // A message without its only field says 0.
  return message.isDone ? 0 : (message.varint(), message.varint());
}

export const needsLogin = signal(false);
// Counts up to ask everything again: after a log-in, or when somebody presses "refresh".
export const refreshes = signal(0);

const noted = new WeakMap<AbortSignal, string[]>();

// What the answers that were asked for with this signal lack, in the server's words.
export function notesFor(abort: AbortSignal): string[] {
  return noted.get(abort) ?? [];
}

export async function call<T>(method: string, message: object, abort?: AbortSignal): Promise<T> {
  const response = await fetch("/" + method, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Connect-Protocol-Version": "1" },
    body: JSON.stringify(message),
    signal: abort,
  }).catch((error: unknown) => {
    // No answer came at all, in words of the browser.
    throw error instanceof TypeError ? new ApiError(0, "unreachable", error.message) : error;
  });
  if (!response.ok) {
    throw await readError(response);
  }
  if (abort) {
    noted.set(abort, [...notesFor(abort), ...notesOf(response)]);
  }
  return (await response.json()) as T;
}

export async function readError(response: Response): Promise<ApiError> {
  const text = await response.text();
  let code = "unknown";
  let message = text || response.statusText;
  let offset: number | undefined;
  try {
    const error = JSON.parse(text) as { code?: string; message?: string; details?: ErrorDetail[] };
    code = error.code ?? code;
    message = error.message ?? message;
    offset = selectorOffsetOf(error.details);
  } catch {
    // A proxy between us and the server answers as it likes.
  }
  return noteError(new ApiError(response.status, code, message, offset, response.headers.get("x-request-id") ?? ""));
}

export function noteError(error: ApiError): ApiError {
  if (error.status === 401) {
    needsLogin.value = true;
  }
  return error;
}
