// Files that are stored as profiles: what they are stored as, how far they are, what became of them.
import { useState } from "preact/hooks";
import { parseLabels, send } from "../../api/uploads";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { selector } from "../../app/question";
import { visibleName } from "../../flame/names";
import { serviceOf } from "../../selector";
import { formatCount } from "../../units";
import { param } from "../../url";
import { askApplications } from "../admin/admin-applications";
import { Drop } from "./drop";
import { OneUpload } from "./one-upload";
import { UploadList } from "./upload-list";
import "./uploads.css";

const FORMATS = ["JFR", "perf.data", "speedscope", "cpuprofile", "heapprofile", "legacy pprof", "pprof", "collapsed", "perf script"];

function Form() {
  const words = pageTexts.value.uploads;
  const [files, setFiles] = useState<File[]>([]);
  const [problem, setProblem] = useState("");
  const services = useAnswer("applications", askApplications).value ?? [];
  const store = (form: HTMLFormElement) => {
    const fields = Object.fromEntries(new FormData(form)) as Record<string, string>;
    const labels = parseLabels(fields.labels);
    if (!labels) {
      setProblem(words.badLabels);
      return;
    }
    setProblem("");
    setFiles([]);
    send(files, {
      labels: [{ name: "service_name", value: fields.service.trim() }, ...labels],
      fromMs: fields.time === "now" ? String(Date.now()) : "0",
      format: fields.format,
      sampleRate: Number(fields.sampleRate),
    });
  };
  return (
    <form
      class="store"
      onSubmit={(event) => {
        event.preventDefault();
        store(event.currentTarget);
      }}
    >
      <p class="muted">{words.hint}</p>
      <div class="inline">
        <label>
          {words.service}
          <input name="service" required list="known-services" defaultValue={serviceOf(selector.value)} />
        </label>
        <datalist id="known-services">
          {services.map(({ name }) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <label>
          {words.labels}
          <input name="labels" class="wide code" spellcheck={false} />
        </label>
        <label>
          {words.time}
          <select name="time">
            {Object.entries(words.times).map(([time, text]) => (
              <option key={time} value={time}>
                {text}
              </option>
            ))}
          </select>
        </label>
      </div>
      <details>
        <summary>{words.more}</summary>
        <div class="inline">
          <label>
            {words.format}
            <select name="format">
              <option value="">{words.anyFormat}</option>
              {FORMATS.map((format) => (
                <option key={format}>{format}</option>
              ))}
            </select>
          </label>
          <label>
            {words.sampleRate}
            <input name="sampleRate" type="number" min={0} class="short" />
          </label>
        </div>
      </details>
      {problem !== "" && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      {files.length === 0 ? (
        <Drop label={words.drop} onFiles={setFiles} />
      ) : (
        <p class="drop">
          <span class="chosen-files">{words.chosen(files.map(({ name }) => visibleName(name)).join(", "))}</span>
          <button type="submit" class="primary">
            {words.store(files.length === 1 ? words.oneFile : words.files(formatCount(files.length)))}
          </button>
          <button type="button" onClick={() => setFiles([])}>
            {words.clear}
          </button>
        </p>
      )}
    </form>
  );
}

export function Uploads() {
  return (
    <section class="uploads">
      <Form />
      {param("upload") !== "" && <OneUpload key={param("upload")} id={param("upload")} />}
      <UploadList />
    </section>
  );
}
