// Files of any profiler: looked at without storing them in a series, one alone or two compared, or stored as profiles.
import { useState } from "preact/hooks";
import { call, refreshes } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { texts } from "../../app/settings";
import { formatTime } from "../../app/question";
import { decodeFlamebearer } from "../../flame/flamebearer";
import { visibleName } from "../../flame/names";
import { change, param } from "../../url";
import { AddressFlame } from "../address-flame";
import { Drop } from "./drop";
import { Failure } from "../notice";
import { Parts, shownPart } from "../parts";
import { useSamplesOf } from "../use-samples";
import { Uploads } from "./uploads";

const SERVICE = "adhocprofiles.v1.AdHocProfileService/";
const CHUNK = 0x8000;

interface Listed {
  profiles?: { id: string; name?: string; uploadedAt?: string }[];
}

interface Shown {
  id?: string;
  profileType?: string;
  profileTypes?: string[];
  flamebearerProfile: string;
}

async function encodeFile(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(i, i + CHUNK));
  }
  return btoa(text);
}

async function upload(files: File[]): Promise<string[]> {
  const ids: string[] = [];
  for (const file of files) {
    const message = { name: file.name, profile: await encodeFile(file) };
    ids.push((await call<{ id: string }>(SERVICE + "Upload", message)).id);
  }
  return ids;
}

function chosenIds(): string[] {
  return param("ids").split(" ").filter((id) => id !== "");
}

function choose(ids: string[]): void {
  change({ ids: ids.slice(-2).join(" "), kind: "", zoom: "", search: "" });
}

function Take() {
  const [message, setMessage] = useState("");
  const words = pageTexts.value.adhoc;
  const take = async (files: File[]) => {
    try {
      setMessage(words.sending);
      const ids = await upload(files);
      setMessage("");
      refreshes.value++;
      choose(ids);
    } catch (error) {
      setMessage((error as Error).message);
    }
  };
  return <Drop label={words.drop} message={message} onFiles={(files) => void take(files)} />;
}

function ask(ids: string[], kind: string, abort: AbortSignal): Promise<Shown> {
  const wanted = kind === "" ? {} : { profileType: kind };
  return ids.length === 1
    ? call<Shown>(SERVICE + "Get", { id: ids[0], ...wanted }, abort)
    : call<Shown>(SERVICE + "Diff", { leftId: ids[0], rightId: ids[1], ...wanted }, abort);
}

function Picture({ ids }: { ids: string[] }) {
  const kind = param("kind");
  const shown = useAnswer(`${ids.join(" ")} ${kind}`, async (abort) => {
    const answer = await ask(ids, kind, abort);
    return { answer, decoded: decodeFlamebearer(answer.flamebearerProfile) };
  });
  const types = shown.value?.answer.profileTypes ?? [];
  const type = kind || shown.value?.answer.profileType || types[0] || "";
  const samples = useSamplesOf({ key: shown.value ? `${ids.join(" ")} ${kind}` : null, types, type }, async (counting, abort) =>
    decodeFlamebearer((await ask(ids, counting, abort)).flamebearerProfile).tree,
  );
  return (
    <section class="adhoc" aria-busy={shown.isLoading}>
      <Failure error={shown.error} />
      {types.length > 1 && (
        <select
          aria-label={pageTexts.value.profileType}
          value={type}
          onChange={(event) => change({ kind: event.currentTarget.value, zoom: "" })}
        >
          {types.map((type) => (
            <option key={type}>{type}</option>
          ))}
        </select>
      )}
      {shown.value?.decoded.isCut && <p class="note">{pageTexts.value.adhoc.cut}</p>}
      {shown.value && (
        <div class="views flame">
          <AddressFlame tree={shown.value.decoded.tree} unit={shown.value.decoded.unit} samples={samples} />
        </div>
      )}
    </section>
  );
}

function Look() {
  const listed = useAnswer("adhoc", (abort) => call<Listed>(SERVICE + "List", {}, abort));
  const ids = chosenIds();
  const words = pageTexts.value.adhoc;
  const { diff } = texts.value;
  return (
    <section class="diff">
      <p class="muted">{words.title}</p>
      <Take />
      <Failure error={listed.error} />
      <ul class="files">
        {(listed.value?.profiles ?? []).map(({ id, name, uploadedAt }) => (
          <li key={id}>
            <label>
              <input
                type="checkbox"
                checked={ids.includes(id)}
                onChange={(event) => choose(event.currentTarget.checked ? [...ids, id] : ids.filter((each) => each !== id))}
              />{" "}
              <span class="code">{visibleName(name ?? "")}</span> <span class="muted">{formatTime(Number(uploadedAt ?? 0))}</span>
              {ids.length === 2 && ids.includes(id) && <strong>{ids[0] === id ? diff.baseline : diff.comparison}</strong>}
            </label>
          </li>
        ))}
      </ul>
      {ids.length > 0 && <Picture ids={ids} />}
    </section>
  );
}

export function AdHoc() {
  const words = pageTexts.value.uploads;
  const parts = Object.entries(words.parts);
  return (
    <>
      <h1>{words.title}</h1>
      <Parts label={words.title} parts={parts} />
      {shownPart(parts.map(([name]) => name)) === "store" ? <Uploads /> : <Look />}
    </>
  );
}
