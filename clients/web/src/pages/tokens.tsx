// Tokens of senders and readers: listed, created, deleted. A secret is on the page once and nowhere else.
import { useState } from "preact/hooks";
import { call, refreshes } from "../api/connect";
import { useAnswer } from "../api/use-answer";
import { pageTexts } from "../app/page-texts";
import { formatTime } from "../app/question";
import { Failure } from "./notice";

interface Token {
  id: string;
  name?: string;
  lastUsedMs?: string;
  grants?: { tenant?: string; role?: string }[];
}

function CreateToken({ onError }: { onError(error?: Error): void }) {
  const words = pageTexts.value.admin;
  const [secret, setSecret] = useState("");
  const create = async (form: HTMLFormElement) => {
    const fields = new FormData(form);
    const grants = [{ tenant: String(fields.get("tenant")), role: String(fields.get("role")) }];
    const made = await call<{ token: string }>("hearth.v1.AccessService/CreateToken", { name: String(fields.get("name")), grants });
    setSecret(made.token);
    onError();
    form.reset();
    refreshes.value++;
  };
  return (
    <>
      <form
        class="inline"
        onSubmit={(event) => {
          event.preventDefault();
          create(event.currentTarget).catch(onError);
        }}
      >
        <input name="name" required maxLength={100} aria-label={words.name} placeholder={words.name} />
        <select name="role" aria-label={words.role}>
          {Object.entries(words.roles).map(([role, does]) => (
            <option key={role} value={role}>
              {role}: {does}
            </option>
          ))}
        </select>
        <input name="tenant" required aria-label={words.tenant} placeholder={words.tenant} defaultValue="anonymous" />
        <button type="submit">{words.createToken}</button>
      </form>
      {secret !== "" && (
        <p role="status">
          {words.secret} <span class="code chosen">{secret}</span>
        </p>
      )}
    </>
  );
}

export function Tokens() {
  const words = pageTexts.value.admin;
  const [error, setError] = useState<Error>();
  // A deleted token cannot be brought back, so its button asks once more.
  const [doomed, setDoomed] = useState("");
  const answer = useAnswer("tokens", (abort) => call<{ tokens?: Token[] }>("hearth.v1.AccessService/ListTokens", {}, abort));
  const tokens = answer.value?.tokens ?? [];
  const remove = (id: string) => {
    if (doomed !== id) {
      setDoomed(id);
      return;
    }
    call("hearth.v1.AccessService/DeleteToken", { id }).then(() => refreshes.value++, setError);
  };
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.tokens}</h2>
      <Failure error={answer.error ?? error} />
      {!answer.error && <CreateToken onError={setError} />}
      {answer.value && tokens.length === 0 && <p class="muted">{words.noTokens}</p>}
      {tokens.length > 0 && (
        <table class="narrow">
          <thead>
            <tr>
              <th scope="col">{words.name}</th>
              <th scope="col">{words.role}</th>
              <th scope="col">{words.lastUsed}</th>
              <th scope="col" />
            </tr>
          </thead>
          <tbody>
            {tokens.map(({ id, name = id, grants = [], lastUsedMs }) => (
              <tr key={id}>
                <th scope="row">{name}</th>
                <td>{grants.map(({ role, tenant }) => `${role} (${tenant})`).join(", ")}</td>
                <td>{Number(lastUsedMs ?? 0) > 0 ? formatTime(Number(lastUsedMs)) : words.never}</td>
                <td>
                  <button type="button" aria-label={words.deleteToken(name)} onClick={() => remove(id)} onBlur={() => setDoomed("")}>
                    {doomed === id ? words.really : words.delete}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
