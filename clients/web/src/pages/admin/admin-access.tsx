// Who may call: the own account, tokens, users, and the roles that are given to them.
import { call, needsLogin } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { administersServer, hasRole, isAnonymous, type Grant, type Who } from "../../app/who";
import type { PartProps } from "./admin";
import { Tokens } from "./admin-tokens";
import { Users } from "./admin-users";
import { GrantFields, GrantText, readGrant } from "./grant-fields";
import { NewPassword } from "../new-password";
import { Failure } from "../notice";
import { Confirm, useSending } from "../sending";
import { Rows } from "../rows";

const SERVICE = "hearth.v1.AccessService/";
const USER = "user:";

interface ListedGrant extends Grant {
  id: number;
  createdBy?: string;
  createdMs?: string;
}

function Account({ who }: { who: Who }) {
  const words = pageTexts.value.admin;
  const { error, isSending, send } = useSending();
  const grants = who.grants ?? [];
  const isUser = who.subject?.startsWith(USER);
  const setPassword = async (form: HTMLFormElement) => {
    const fields = Object.fromEntries(new FormData(form));
    // The server ends all sessions, this one among them.
    if (await send(SERVICE + "SetPassword", { name: who.subject?.slice(USER.length), ...fields })) {
      needsLogin.value = true;
    }
  };
  if (isAnonymous(who)) {
    return <p class="note">{words.nobodyAsked}</p>;
  }
  return (
    <section>
      <h2>{words.account(who.name ?? who.subject ?? "")}</h2>
      <Failure error={error} />
      <ul class="plain-list">
        {grants.map((grant) => (
          <li key={grant.id}>
            <GrantText grant={grant} />
          </li>
        ))}
      </ul>
      {grants.length === 0 && <p class="note">{words.noRole}</p>}
      {isUser && (
        <form
          class="inline"
          onSubmit={(event) => {
            event.preventDefault();
            void setPassword(event.currentTarget);
          }}
        >
          <input
            name="oldPassword"
            type="password"
            required
            autocomplete="current-password"
            aria-label={words.oldPassword}
            placeholder={words.oldPassword}
          />
          <NewPassword label={words.newPassword} />
          <button type="submit" disabled={isSending}>
            {words.setPassword}
          </button>
          <Confirm
            label={words.logOutEverywhere}
            really={words.endReally}
            of={who.name ?? ""}
            onConfirm={() => void send(SERVICE + "EndSessions", {}).then((done) => done && (needsLogin.value = true))}
          />
        </form>
      )}
    </section>
  );
}

function Grants({ who }: { who: Who }) {
  const words = pageTexts.value.admin;
  const answer = useAnswer("grants", (abort) => call<{ grants?: ListedGrant[] }>(SERVICE + "ListGrants", {}, abort));
  const { error, isSending, send } = useSending();
  const grants = answer.value?.grants ?? [];
  const add = async (form: HTMLFormElement) => {
    const fields = new FormData(form);
    if (await send(SERVICE + "AddGrant", { subject: String(fields.get("subject")).trim(), ...readGrant(fields) })) {
      form.reset();
    }
  };
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.grants}</h2>
      <Failure error={answer.error ?? error} />
      {answer.value && grants.length === 0 && <p class="muted">{words.noGrants}</p>}
      {grants.length > 0 && (
        <Rows heads={[words.subject, words.may, words.createdBy, null]}>
          {grants.map((grant) => (
            <tr key={grant.id}>
              <th scope="row">{grant.subject}</th>
              <td>
                <GrantText grant={grant} />
              </td>
              <td title={formatTime(Number(grant.createdMs ?? 0))}>{grant.createdBy}</td>
              <td class="actions">
                <Confirm
                  label={words.delete}
                  of={`${grant.subject} ${grant.role}`}
                  onConfirm={() => void send(SERVICE + "DeleteGrant", { id: grant.id })}
                />
              </td>
            </tr>
          ))}
        </Rows>
      )}
      <form
        class="inline"
        onSubmit={(event) => {
          event.preventDefault();
          void add(event.currentTarget);
        }}
      >
        <input name="subject" required class="wide" aria-label={words.subjectHint} placeholder={words.subjectHint} />
        <GrantFields who={who} />
        <button type="submit" disabled={isSending}>
          {words.addGrant}
        </button>
      </form>
    </section>
  );
}

export function Access({ who }: PartProps) {
  return (
    <>
      <Account who={who} />
      {hasRole(who, "admin") && <Tokens who={who} />}
      {administersServer(who) && <Users />}
      {hasRole(who, "admin") && <Grants who={who} />}
    </>
  );
}
