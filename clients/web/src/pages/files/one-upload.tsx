// What was stored of a file: a row for each profile type of each profile, which opens it.
import { call } from "../../api/connect";
import type { Upload } from "../../api/uploads";
import { useAnswer } from "../../api/use-answer";
import { PageLink } from "../../app/page-link";
import { pageTexts } from "../../app/page-texts";
import { partsOfType } from "../../app/question";
import { visibleName } from "../../flame/names";
import { formatCount, formatValue } from "../../units";
import { change } from "../../url";
import { Failure } from "../notice";
import { Rows } from "../rows";

const MAX_SHOWN = 200;

export function OneUpload({ id }: { id: string }) {
  const words = pageTexts.value.uploads;
  const got = useAnswer(id, (abort) => call<Upload>("hearth.v1.UploadService/GetUpload", { uploadId: id }, abort));
  const { fileName = "", results = [], dropped } = got.value ?? {};
  return (
    <section class="warned" aria-busy={got.isLoading}>
      <div class="headline">
        <h2>{visibleName(fileName)}</h2>
        <a href={"/api/v1/uploads/original?id=" + encodeURIComponent(id)} download={fileName}>
          {words.original}
        </a>
        <button type="button" onClick={() => change({ upload: "" })}>
          {words.close}
        </button>
      </div>
      <Failure error={got.error} />
      {dropped && <p class="note">{words.dropped(dropped)}</p>}
      {got.value && results.length === 0 && <p class="muted">{words.empty}</p>}
      {results.length > 0 && (
        <Rows heads={[words.type, { number: words.samples }, { number: words.total }, null]}>
          {results.slice(0, MAX_SHOWN).map(({ profile = 0, profileType = "", profileId = "", samples = "0", total = "0" }) => (
            <tr key={`${profile} ${profileType}`}>
              <th scope="row">{partsOfType(profileType).name}</th>
              <td class="number">{formatCount(Number(samples))}</td>
              <td class="number">{formatValue(Number(total), partsOfType(profileType).unit)}</td>
              <td>
                {profileId !== "" && (
                  <PageLink page="profiles" to={{ id: profileId, type: profileType }} label={`${words.view}: ${profileType}`}>
                    {words.view}
                  </PageLink>
                )}
              </td>
            </tr>
          ))}
        </Rows>
      )}
      {results.length > MAX_SHOWN && <p class="note">{pageTexts.value.admin.onlyFirst(formatCount(MAX_SHOWN), formatCount(results.length))}</p>}
    </section>
  );
}
