// People who log in here with a password.
import { useState } from "preact/hooks";
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { formatAgo } from "../../app/ago";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import { NewPassword } from "../new-password";
import { Failure } from "../notice";
import { Confirm, useSending } from "../sending";
import { Rows } from "../rows";

const SERVICE = "hearth.v1.AccessService/";

interface User {
  name: string;
  createdBy?: string;
  createdMs?: string;
  lastLoginMs?: string;
  disabled?: boolean;
  sessions?: string;
}

interface RowProps {
  user: User;
  send(method: string, message: object): Promise<unknown>;
}

function Row({ user: { name, createdBy, createdMs, lastLoginMs, disabled = false, sessions = "0" }, send }: RowProps) {
  const words = pageTexts.value.admin;
  const [isNewPassword, setIsNewPassword] = useState(false);
  const loginMs = Number(lastLoginMs ?? 0);
  const setPassword = async (form: HTMLFormElement) => {
    if (await send("SetPassword", { name, password: new FormData(form).get("password") })) {
      setIsNewPassword(false);
    }
  };
  return (
    <tr>
      <th scope="row">
        {name} {disabled && <span class="note">{words.disabled}</span>}
        <div class="muted">{words.createdByAt(createdBy || "anonymous", formatTime(Number(createdMs ?? 0)))}</div>
      </th>
      <td title={loginMs > 0 ? formatTime(loginMs) : ""}>{loginMs > 0 ? formatAgo(loginMs) : words.never}</td>
      <td class="number">{sessions}</td>
      <td class="actions">
        {isNewPassword ? (
          <form
            class="inline"
            onSubmit={(event) => {
              event.preventDefault();
              void setPassword(event.currentTarget);
            }}
          >
            <NewPassword label={words.newPassword} />
            <button type="submit">{words.save}</button>
            <button type="button" onClick={() => setIsNewPassword(false)}>
              {words.leave}
            </button>
          </form>
        ) : (
          <>
            <button type="button" aria-label={`${words.setPassword}: ${name}`} onClick={() => setIsNewPassword(true)}>
              {words.setPassword}
            </button>
            <Confirm
              label={words.endSessions}
              really={words.endReally}
              of={name}
              disabled={sessions === "0"}
              onConfirm={() => void send("EndSessions", { subject: "user:" + name })}
            />
            <button
              type="button"
              aria-label={`${disabled ? words.enable : words.disable}: ${name}`}
              onClick={() => void send("DisableUser", { name, disabled: !disabled })}
            >
              {disabled ? words.enable : words.disable}
            </button>
            <Confirm label={words.delete} of={name} onConfirm={() => void send("DeleteUser", { name })} />
          </>
        )}
      </td>
    </tr>
  );
}

export function Users() {
  const words = pageTexts.value.admin;
  const answer = useAnswer("users", (abort) => call<{ users?: User[] }>(SERVICE + "ListUsers", {}, abort));
  const { error, isSending, send } = useSending();
  const users = answer.value?.users ?? [];
  const create = async (form: HTMLFormElement) => {
    if (await send(SERVICE + "CreateUser", Object.fromEntries(new FormData(form)))) {
      form.reset();
    }
  };
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.users}</h2>
      <Failure error={answer.error ?? error} />
      {answer.value && users.length === 0 && <p class="muted">{words.noUsers}</p>}
      {users.length > 0 && (
        <Rows heads={[words.name, words.lastLogin, { number: words.sessions }, null]}>
          {users.map((user) => (
            <Row key={user.name} user={user} send={(method, message) => send(SERVICE + method, message)} />
          ))}
        </Rows>
      )}
      <form
        class="inline"
        onSubmit={(event) => {
          event.preventDefault();
          void create(event.currentTarget);
        }}
      >
        <input name="name" required autocomplete="off" aria-label={words.userName} placeholder={words.userName} />
        <NewPassword label={words.passwordHint} />
        <button type="submit" disabled={isSending}>
          {words.createUser}
        </button>
      </form>
      <p class="muted">{words.usersHint}</p>
    </section>
  );
}
