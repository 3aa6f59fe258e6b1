// Files on their way to the server, in parts. They go on while other pages are shown, and a file whose connection broke
// goes on with the parts that are missing.
import { effect, signal } from "@preact/signals";
import { ApiError, call, readError, refreshes } from "./connect";

const SERVICE = "hearth.v1.UploadService/";
const PART_BYTES = 1 << 20;
const AT_A_TIME = 3;
// Files up to this size are read once more for their checksum.
const MAX_HASHED_BYTES = 256 << 20;
const PAUSES_MS = [1000, 2000, 4000];

export interface Label {
  name: string;
  value: string;
}

interface Wanted {
  labels: Label[];
  // "0": the file's own time.
  fromMs: string;
  format: string;
  sampleRate: number;
}

export interface Upload {
  uploadId: string;
  fileName?: string;
  state?: string;
  reason?: string;
  sizeBytes?: string;
  partBytes?: number;
  parts?: number;
  receivedBytes?: string;
  missingParts?: number[];
  labels?: Label[];
  createdMs?: string;
  profiles?: string;
  samples?: string;
  settledProfiles?: string;
  storedProfiles?: string;
  refusedProfiles?: string;
  dropped?: string;
  results?: { profile?: number; profileType?: string; profileId?: string; samples?: string; total?: string }[];
}

export interface Job {
  number: number;
  file: File;
  wanted: Wanted;
  // Empty until the server knows the file.
  id: string;
  state: "waiting" | "sending" | "failed" | "sent";
  sentBytes: number;
  reason: string;
}

export const jobs = signal<Job[]>([]);
let lastNumber = 0;

function update(number: number, part: Partial<Job>): void {
  jobs.value = jobs.value.map((job) => (job.number === number ? { ...job, ...part } : job));
}

function jobOf(number: number): Job | undefined {
  return jobs.value.find((job) => job.number === number);
}

export function dismiss(number: number): void {
  jobs.value = jobs.value.filter((job) => job.number !== number);
}

function isSending(job: Job): boolean {
  return job.state === "waiting" || job.state === "sending";
}

// Whether a repetition may help: the connection broke, or the server or its database is busy.
function mayPass(error: Error): boolean {
  return !(error instanceof ApiError) || error.status >= 500 || error.status === 429;
}

async function sendPart(id: string, part: number, data: Blob): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      const response = await fetch(`/api/v1/uploads/part?id=${encodeURIComponent(id)}&part=${part}`, { method: "POST", body: data });
      if (response.ok) {
        return;
      }
      throw await readError(response);
    } catch (error) {
      if (attempt === PAUSES_MS.length || !mayPass(error as Error)) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSES_MS[attempt]));
    }
  }
}

// Only secure addresses offer checksums; the server checks the size of the file in any case.
async function hashOf(file: File): Promise<string> {
  if (!crypto.subtle || file.size > MAX_HASHED_BYTES) {
    return "";
  }
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function sendJob({ number, file, wanted, id }: Job): Promise<void> {
  if (id === "") {
    const announced = { fileName: file.name, sizeBytes: String(file.size), partBytes: PART_BYTES, sha256: await hashOf(file), ...wanted };
    id = (await call<Upload>(SERVICE + "CreateUpload", announced)).uploadId;
    update(number, { id });
  }
  // The server names at most 1,000 missing parts at a time.
  for (;;) {
    const { missingParts = [], partBytes = PART_BYTES, receivedBytes = "0" } = await call<Upload>(SERVICE + "GetUpload", { uploadId: id });
    update(number, { sentBytes: Number(receivedBytes) });
    if (missingParts.length === 0) {
      break;
    }
    for (const part of missingParts) {
      const data = file.slice(part * partBytes, (part + 1) * partBytes);
      await sendPart(id, part, data);
      update(number, { sentBytes: (jobOf(number)?.sentBytes ?? 0) + data.size });
    }
  }
  await call(SERVICE + "FinishUpload", { uploadId: id });
}

async function run(number: number): Promise<void> {
  const job = jobOf(number);
  if (!job) {
    return;
  }
  update(number, { state: "sending", reason: "" });
  try {
    await sendJob(job);
    update(number, { state: "sent" });
  } catch (error) {
    update(number, { state: "failed", reason: (error as Error).message });
  }
  refreshes.value++;
}

let running = 0;

function startWaiting(): void {
  for (const job of jobs.value) {
    if (job.state === "waiting" && running < AT_A_TIME) {
      running++;
      void run(job.number).finally(() => {
        running--;
        startWaiting();
      });
    }
  }
}

export function send(files: File[], wanted: Wanted): void {
  const added = files.map((file): Job => ({ number: ++lastNumber, file, wanted, id: "", state: "waiting", sentBytes: 0, reason: "" }));
  jobs.value = [...jobs.value, ...added];
  startWaiting();
}

// Goes on with an upload that the server has parts of.
export function resume(file: File, id: string): void {
  const wanted = { labels: [], fromMs: "0", format: "", sampleRate: 0 };
  jobs.value = [...jobs.value.filter((job) => job.id !== id), { number: ++lastNumber, file, wanted, id, state: "waiting", sentBytes: 0, reason: "" }];
  startWaiting();
}

export function retry(number: number): void {
  update(number, { state: "waiting" });
  startWaiting();
}

// "env=prod, region=eu"; undefined if the text is anything else.
export function parseLabels(text: string): Label[] | undefined {
  const parts = text.split(/[,\n]/).map((part) => part.trim()).filter((part) => part !== "");
  const labels = parts.map((part) => /^([^=\s]+)\s*=\s*(.*)$/.exec(part));
  return labels.every((found) => found) ? labels.map((found) => ({ name: found![1], value: found![2] })) : undefined;
}

function warn(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

if (typeof window !== "undefined") {
  effect(() => {
    const change = jobs.value.some(isSending) ? window.addEventListener : window.removeEventListener;
    change.call(window, "beforeunload", warn as EventListener);
  });
}
