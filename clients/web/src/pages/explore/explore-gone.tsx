// Services that have sent profiles once, but none of what is shown: since when, and the way to what they sent last.
import { useAnswer } from "../../api/use-answer";
import { formatAgo } from "../../app/ago";
import { PageLink } from "../../app/page-link";
import { pageTexts } from "../../app/page-texts";
import { formatTime, span, typeName, type ProfileType } from "../../app/question";
import { formatSelector } from "../../selector";
import { question } from "../../url";
import { askApplications, type Application } from "../admin/admin-applications";
import { aroundLast } from "../empty";

const MAX_SHOWN = 50;

function Row({ application, type }: { application: Application; type: ProfileType }) {
  const words = pageTexts.value.explore;
  const { name } = application;
  const at = Number(application.lastSeenMs);
  const isInRange = at >= span.value.startMs && at <= span.value.endMs;
  const q = formatSelector([{ name: "service_name", op: "=", value: name }]);
  return (
    <tr>
      <th scope="row">
        <PageLink page="profile" to={isInRange ? { ...question(), q, type: "" } : aroundLast(application)} label={words.openThen(name)}>
          {name}
        </PageLink>
      </th>
      <td class="muted" title={formatTime(at)}>
        {isInRange ? words.otherTypes(typeName(type), formatAgo(at)) : words.lastSeen(formatAgo(at))}
      </td>
    </tr>
  );
}

interface Props {
  // Services that have a row already.
  present: Set<string>;
  filter: string;
  type: ProfileType;
}

export function Gone({ present, filter, type }: Props) {
  const words = pageTexts.value.explore;
  const applications = useAnswer("applications", askApplications).value ?? [];
  const gone = applications
    .filter(({ name, lastSeenMs }) => Number(lastSeenMs ?? 0) > 0 && !present.has(name) && name.toLowerCase().includes(filter))
    .sort((a, b) => Number(b.lastSeenMs) - Number(a.lastSeenMs));
  if (gone.length === 0) {
    return null;
  }
  return (
    <section class="gone" aria-label={words.gone}>
      <h2>{words.gone}</h2>
      <table>
        <tbody>
          {gone.slice(0, MAX_SHOWN).map((application) => (
            <Row key={application.name} application={application} type={type} />
          ))}
        </tbody>
      </table>
      {gone.length > MAX_SHOWN && <p class="note">{pageTexts.value.admin.onlyFirst(String(MAX_SHOWN), String(gone.length))}</p>}
    </section>
  );
}
