// Results of async-profiler and pprof tasks: the files that agents sent, and their stack traces together.
import { useMemo, useState } from "preact/hooks";
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { directingTexts } from "../../app/directing-texts";
import { formatTime } from "../../app/question";
import { treeOfForest } from "../../flame/forest";
import { saveFile } from "../../save";
import { formatValue } from "../../units";
import { change, param } from "../../url";
import { AddressFlame } from "../address-flame";
import { NothingYet } from "../nothing-yet";
import { Failure, Notes } from "../notice";
import type { Task } from "./tasks";

const SERVICE = "hearth.v1.TaskService/";

interface Upload {
  uploadId: string;
  instance?: string;
  format?: string;
  sizeBytes?: string;
  receivedMs?: string;
}

interface Analysis {
  elements?: { id?: number; parentId?: number; codeSignature?: string; total?: string }[];
  unit?: string;
  sampleTypes?: string[];
  tip?: string;
}

async function download({ uploadId, instance = "", format = "" }: Upload): Promise<void> {
  const { content } = await call<{ content?: string }>(SERVICE + "GetUpload", { uploadId });
  const bytes = Uint8Array.from(atob(content ?? ""), (c) => c.charCodeAt(0));
  const name = `${instance.replace(/[^\w.-]+/g, "_") || "upload"}.${format === "jfr" ? "jfr" : "pprof"}`;
  saveFile(new Blob([bytes], { type: "application/octet-stream" }), name);
}

function Files({ uploads }: { uploads: Upload[] }) {
  const words = directingTexts.value;
  const [error, setError] = useState<Error>();
  return (
    <>
      <h2>{words.tasks.files}</h2>
      <Failure error={error} />
      <ul class="plain-list">
        {uploads.map((upload) => (
          <li key={upload.uploadId}>
            <span class="code">{upload.instance}</span> {upload.format}, {formatValue(Number(upload.sizeBytes ?? 0), "bytes")},{" "}
            {formatTime(Number(upload.receivedMs ?? 0))}{" "}
            <button type="button" onClick={() => download(upload).then(() => setError(undefined), setError)}>
              {words.tasks.download}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

export function FilesAnalysis({ task, round, isOpen }: { task: Task; round: number; isOpen: boolean }) {
  const words = directingTexts.value;
  const listed = useAnswer(`${task.taskId} ${isOpen ? round : ""}`, (abort) =>
    call<{ uploads?: Upload[] }>(SERVICE + "ListUploads", { taskId: task.taskId }, abort),
  );
  const uploads = listed.value?.uploads ?? [];
  const instances = [...new Set(uploads.map(({ instance = "" }) => instance))].sort();
  const instance = instances.includes(param("of")) ? param("of") : "";
  const type = param("sample");
  const answer = useAnswer(uploads.length > 0 ? `${task.taskId} ${uploads.length} ${instance} ${type}` : null, (abort) =>
    call<Analysis>(SERVICE + "AnalyzeUploads", { taskId: task.taskId, instances: instance === "" ? [] : [instance], sampleType: type }, abort),
  );
  // The server's root is left out: every flame graph has a box for the whole.
  const tree = useMemo(
    () =>
      treeOfForest([
        (answer.value?.elements ?? [])
          .filter(({ parentId = 0 }) => parentId >= 0)
          .map(({ id = 0, parentId = 0, codeSignature = "", total = "0" }) => ({ id, parentId, name: codeSignature, total: Number(total) })),
      ]),
    [answer.value],
  );
  const types = answer.value?.sampleTypes ?? [];
  const select = (label: string, name: string, values: string[], first: string) => (
    <label>
      {label}{" "}
      <select value={param(name)} onChange={(event) => change({ [name]: event.currentTarget.value, zoom: "" })}>
        {first !== "" && <option value="">{first}</option>}
        {values.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <Failure error={listed.error ?? answer.error} />
      {listed.value && uploads.length === 0 && <NothingYet isOpen={isOpen} />}
      {uploads.length > 0 && (
        <>
          <div class="tools">
            <span class="figure">{answer.value && formatValue(tree.total[0], answer.value.unit ?? "")}</span>
            {types.length > 1 && select(words.tasks.sampleType, "sample", types, words.tasks.defaultType)}
            {instances.length > 1 && select(words.instance, "of", instances, words.tasks.allInstances)}
          </div>
          <Notes notes={[answer.value?.tip ?? ""]} />
          {tree.total[0] > 0 && (
            <div class="views flame">
              <AddressFlame tree={tree} unit={answer.value?.unit ?? ""} />
            </div>
          )}
          <Files uploads={uploads} />
        </>
      )}
    </>
  );
}
