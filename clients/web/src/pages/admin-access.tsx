// Who may call: the own account, and tokens.
import { needsLogin } from "../api/connect";
import { pageTexts } from "../app/page-texts";
import { hasRole, isAnonymous, type Who } from "../app/who";
import type { PartProps } from "./admin";
import { Tokens } from "./admin-tokens";
import { NewPassword } from "./new-password";
import { GrantText } from "./grant-fields";
import { Failure } from "./notice";
import { Confirm, useSending } from "./sending";

const SERVICE = "hearth.v1.AccessService/";
const USER = "user:";

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

export function Access({ who }: PartProps) {
  return (
    <>
      <Account who={who} />
      {hasRole(who, "admin") && <Tokens who={who} />}
    </>
  );
}
