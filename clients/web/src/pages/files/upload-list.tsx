// Files on their way from this browser, and those that the server has: one row for each.
import { useState } from "preact/hooks";
import { call } from "../../api/connect";
import { dismiss, jobs, resume, retry, type Job, type Upload } from "../../api/uploads";
import { useWatched } from "../../api/use-watched";
import { formatAgo } from "../../app/ago";
import { pageTexts } from "../../app/page-texts";
import { hasRole, useWho } from "../../app/who";
import { Said } from "../../app/said";
import { visibleName } from "../../flame/names";
import { formatCount, formatShare, formatValue } from "../../units";
import { change } from "../../url";
import { labelText } from "../profiles/list-profiles";
import { Choose } from "./choose";
import { Failure } from "../notice";
import { Confirm, useSending } from "../sending";
import { Rows } from "../rows";

const SERVICE = "hearth.v1.UploadService/";
const LOOK_AGAIN_MS = 1500;
const MAX_SHOWN = 100;
const UNDER_WAY = ["UPLOAD_STATE_QUEUED", "UPLOAD_STATE_PARSING"];

function isUnderWay({ uploads = [] }: Listed): boolean {
  return uploads.some(({ state = "" }) => UNDER_WAY.includes(state));
}

function Progress({ text, part, whole, isBad }: { text: string; part: number; whole: number; isBad?: boolean }) {
  return (
    <>
      <meter min={0} max={whole || 1} value={part} class={isBad ? "more" : ""} aria-hidden="true" /> {text}
    </>
  );
}

function JobState({ job }: { job: Job }) {
  const words = pageTexts.value.uploads;
  const share = formatShare(job.sentBytes, job.file.size);
  if (job.state === "failed") {
    return <span class="error">{words.notSent(job.reason)}</span>;
  }
  return job.state === "waiting" ? <>{words.waiting}</> : <Progress text={words.sending(share)} part={job.sentBytes} whole={job.file.size} />;
}

function UploadState({ upload }: { upload: Upload }) {
  const words = pageTexts.value.uploads;
  const { state, reason = "" } = upload;
  const [size, received, all, settled, stored, refused] = [
    upload.sizeBytes, upload.receivedBytes, upload.profiles, upload.settledProfiles, upload.storedProfiles, upload.refusedProfiles,
  ].map((text) => Number(text ?? 0));
  const counted = words.partly(formatCount(stored), formatCount(refused));
  switch (state) {
    case "UPLOAD_STATE_RECEIVING":
      return <Progress text={words.interrupted(formatShare(received, size))} part={received} whole={size} isBad />;
    case "UPLOAD_STATE_QUEUED":
      return (
        <>
          {reason === "" ? words.queued : words.again} <Said text={reason} />
        </>
      );
    case "UPLOAD_STATE_PARSING":
      return all === 0 ? <>{words.reading}</> : <Progress text={words.parsing(formatCount(settled), formatCount(all))} part={settled} whole={all} />;
    case "UPLOAD_STATE_FAILED":
      return (
        <span class="error">
          {words.failed}: <Said text={reason} /> {stored > 0 && counted}
        </span>
      );
    default:
      return (
        <>
          {stored === 0 ? words.empty : words.done(formatCount(stored))} {refused > 0 && <span class="note">{counted}</span>}
          {upload.dropped && <div class="muted">{words.dropped(upload.dropped)}</div>}
        </>
      );
  }
}

// The file is no longer in the browser: the person names it again.
function GoOn({ upload }: { upload: Upload }) {
  const words = pageTexts.value.uploads;
  const [problem, setProblem] = useState("");
  const { fileName = "", sizeBytes = "0", uploadId } = upload;
  const take = (file?: File) => {
    if (file && (file.name !== fileName || file.size !== Number(sizeBytes))) {
      setProblem(words.otherFile(visibleName(fileName), formatCount(Number(sizeBytes))));
    } else if (file) {
      resume(file, uploadId);
    }
  };
  return (
    <label class="go-on">
      {words.goOnWith} <Choose onFiles={([file]) => take(file)} />
      {problem !== "" && (
        <span class="error" role="alert">
          {problem}
        </span>
      )}
    </label>
  );
}

interface Listed {
  uploads?: Upload[];
}

interface RowProps {
  upload?: Upload;
  job?: Job;
  mayDelete: boolean;
  remove(id: string): void;
}

function Row({ upload, job, mayDelete, remove }: RowProps) {
  const words = pageTexts.value.uploads;
  const name = visibleName(upload?.fileName ?? job?.file.name ?? "");
  const labels = upload?.labels ?? job?.wanted.labels ?? [];
  const isReceiving = !upload || upload.state === "UPLOAD_STATE_RECEIVING";
  // The server's word counts, but for a file that is on its way.
  const shownJob = isReceiving ? job : undefined;
  const service = labels.find((label) => label.name === "service_name")?.value;
  return (
    <tr>
      <th scope="row">
        {name}
        <div class="muted">
          {service} <span class="code">{labelText(labels)}</span>
        </div>
      </th>
      <td class="number">{formatValue(Number(upload?.sizeBytes ?? job?.file.size ?? 0), "bytes")}</td>
      <td class="wrapped">
        {shownJob ? <JobState job={shownJob} /> : upload && <UploadState upload={upload} />}
        {upload && isReceiving && !job && <GoOn upload={upload} />}
      </td>
      <td>{upload ? formatAgo(Number(upload.createdMs ?? 0)) : ""}</td>
      <td class="actions">
        {shownJob?.state === "failed" && (
          <>
            <button type="button" aria-label={`${words.goOn}: ${name}`} onClick={() => retry(shownJob.number)}>
              {words.goOn}
            </button>
            {!upload && (
              <button type="button" aria-label={`${words.dismiss}: ${name}`} onClick={() => dismiss(shownJob.number)}>
                {words.dismiss}
              </button>
            )}
          </>
        )}
        {upload?.state === "UPLOAD_STATE_DONE" && (
          <button type="button" aria-label={`${words.open}: ${name}`} onClick={() => change({ upload: upload.uploadId })}>
            {words.open}
          </button>
        )}
        {upload && mayDelete && <Confirm label={words.delete} of={name} onConfirm={() => remove(upload.uploadId)} />}
      </td>
    </tr>
  );
}

export function UploadList() {
  const words = pageTexts.value.uploads;
  const { value, error } = useWatched("uploads", LOOK_AGAIN_MS, isUnderWay, (abort) => call<Listed>(SERVICE + "ListUploads", {}, abort));
  const uploads = value?.uploads ?? [];
  const sending = useSending();
  const mayDelete = hasRole(useWho().value, "editor");
  const known = new Set(uploads.map(({ uploadId }) => uploadId));
  const alone = jobs.value.filter((job) => !known.has(job.id));
  const remove = (id: string) => {
    const job = jobs.value.find((each) => each.id === id);
    void sending.send(SERVICE + "DeleteUpload", { uploadId: id }).then((done) => done && job && dismiss(job.number));
  };
  return (
    <section>
      <h2>{words.uploads}</h2>
      <Failure error={error ?? sending.error} />
      {value && uploads.length + alone.length === 0 && <p class="muted">{words.none}</p>}
      {uploads.length + alone.length > 0 && (
        <Rows shape="tall" heads={[words.file, { number: words.size }, words.state, words.when, null]}>
          {alone.map((job) => (
            <Row key={`job ${job.number}`} job={job} mayDelete={mayDelete} remove={remove} />
          ))}
          {uploads.slice(0, MAX_SHOWN).map((upload) => (
            <Row
              key={upload.uploadId}
              upload={upload}
              job={jobs.value.find(({ id }) => id === upload.uploadId)}
              mayDelete={mayDelete}
              remove={remove}
            />
          ))}
        </Rows>
      )}
      {uploads.length > MAX_SHOWN && <p class="note">{pageTexts.value.admin.onlyFirst(formatCount(MAX_SHOWN), formatCount(uploads.length))}</p>}
    </section>
  );
}
