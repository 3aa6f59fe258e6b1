// Asks for merged stack traces and diffs in protobuf, and has a worker decode them.
import { notesOf } from "../notes";
import { workerUrl } from "./trusted";
import type { Decoded } from "./tree";
// Vite gives the file's address in the build; a worker from a blob would need a looser policy.
import decoderUrl from "./worker?worker&url";

export interface Loaded extends Decoded {
  /** What the answer lacks, in the server's words. */
  notes: string[];
}

/** An error that the server answered: its Connect code, HTTP status, and words. */
class LoadError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string,
  ) {
    super(message);
  }
}

interface Waiting {
  resolve(decoded: Decoded): void;
  reject(error: Error): void;
}

let worker: Worker | undefined;
let lastId = 0;
const waiting = new Map<number, Waiting>();

function theWorker(): Worker {
  if (!worker) {
    worker = new Worker(workerUrl(decoderUrl), { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<{ id: number; decoded?: Decoded; error?: string }>) => {
      const { id, decoded, error } = event.data;
      const waiter = waiting.get(id);
      waiting.delete(id);
      if (decoded) waiter?.resolve(decoded);
      else waiter?.reject(new Error(error));
    });
    worker.addEventListener("error", (event) => {
      waiting.forEach((waiter) => waiter.reject(new Error(event.message || "the decoder could not be started")));
      waiting.clear();
      worker = undefined;
    });
  }
  return worker;
}

function decodeInWorker(kind: "merge" | "diff", bytes: Uint8Array): Promise<Decoded> {
  return new Promise((resolve, reject) => {
    const id = ++lastId;
    waiting.set(id, { resolve, reject });
    theWorker().postMessage({ id, kind, bytes }, [bytes.buffer]);
  });
}

async function errorOf(response: Response): Promise<LoadError> {
  const text = await response.text();
  const requestId = response.headers.get("x-request-id") ?? "";
  try {
    const { code, message } = JSON.parse(text) as { code?: string; message?: string };
    return new LoadError(response.status, code ?? "unknown", message ?? text, requestId);
  } catch {
    return new LoadError(response.status, "unknown", text || response.statusText, requestId);
  }
}

async function load(kind: "merge" | "diff", method: string, request: Uint8Array, signal: AbortSignal): Promise<Loaded> {
  theWorker(); // starts while the server is thinking
  const response = await fetch(`/hearth.v1.QueryService/${method}`, {
    method: "POST",
    headers: { "Content-Type": "application/proto", "Connect-Protocol-Version": "1" },
    body: request as BodyInit,
    signal,
  }).catch((error: unknown) => {
    // No answer came at all, in words of the browser.
    throw error instanceof TypeError ? new LoadError(0, "unreachable", error.message, "") : error;
  });
  if (!response.ok) {
    throw await errorOf(response);
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const decoded = await decodeInWorker(kind, bytes);
  signal.throwIfAborted();
  return { ...decoded, notes: notesOf(response) };
}

/** `request` is a hearth.v1.MergeRequest of format FLAMEGRAPH. */
export function loadMerge(request: Uint8Array, signal: AbortSignal): Promise<Loaded> {
  return load("merge", "Merge", request, signal);
}

/** `request` is a hearth.v1.DiffRequest. */
export function loadDiff(request: Uint8Array, signal: AbortSignal): Promise<Loaded> {
  return load("diff", "Diff", request, signal);
}
