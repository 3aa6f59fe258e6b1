// Tokens of senders and readers: listed, created, replaced, deleted. A secret is on the page once and nowhere else.
import { useState } from "preact/hooks";
import { call } from "../../api/connect";
import { useAnswer } from "../../api/use-answer";
import { formatAgo } from "../../app/ago";
import { pageTexts } from "../../app/page-texts";
import { formatTime } from "../../app/question";
import type { Grant, Who } from "../../app/who";
import { CopyButton } from "../copied-text";
import { GrantFields, GrantText, readGrant } from "./grant-fields";
import { Failure } from "../notice";
import { Confirm, useSending } from "../sending";
import { Rows } from "../rows";

const SERVICE = "hearth.v1.AccessService/";
const DAY_MS = 86_400_000;

interface Token {
  id: string;
  name?: string;
  createdBy?: string;
  expiresMs?: string;
  lastUsedMs?: string;
  lastUsedFrom?: string;
  grants?: Grant[];
}

// When a token ends that is valid for so many days; 0: never.
function endOf(days: string): string {
  return Number(days) > 0 ? String(Math.floor(Date.now() + Number(days) * DAY_MS)) : "0";
}

function Ends({ expiresMs = "0" }: Token) {
  const words = pageTexts.value.admin;
  const at = Number(expiresMs);
  if (at === 0) {
    return <>{words.never}</>;
  }
  return at < Date.now() ? <span class="note">{words.endedAt(formatTime(at))}</span> : <>{formatTime(at)}</>;
}

export function Tokens({ who }: { who: Who }) {
  const words = pageTexts.value.admin;
  const [secret, setSecret] = useState("");
  const answer = useAnswer("tokens", (abort) => call<{ tokens?: Token[] }>(SERVICE + "ListTokens", {}, abort));
  const { error, isSending, send } = useSending();
  const tokens = answer.value?.tokens ?? [];
  const make = async (method: string, message: object): Promise<boolean> => {
    const made = await send<{ token: string }>(SERVICE + method, message);
    setSecret(made?.token ?? "");
    return made !== undefined;
  };
  const create = async (form: HTMLFormElement) => {
    const fields = new FormData(form);
    const message = { name: fields.get("name"), grants: [readGrant(fields)], expiresMs: endOf(String(fields.get("days"))) };
    if (await make("CreateToken", message)) {
      form.reset();
    }
  };
  // The old one stays valid for a day, in which its users take the new one, which has the lifetime of the old one.
  const rotate = (id: string) => void make("RotateToken", { id, overlapMs: String(DAY_MS) });
  return (
    <section aria-busy={answer.isLoading}>
      <h2>{words.tokens}</h2>
      <Failure error={answer.error ?? error} />
      {secret !== "" && (
        <p class="warned" role="status">
          {words.secret} <span class="code chosen">{secret}</span> <CopyButton text={secret} />
        </p>
      )}
      {answer.value && tokens.length === 0 && <p class="muted">{words.noTokens}</p>}
      {tokens.length > 0 && (
        <Rows heads={[words.name, words.may, words.lastUsed, words.ends, words.createdBy, null]}>
          {tokens.map((token) => (
            <tr key={token.id}>
              <th scope="row">{token.name}</th>
              <td>
                {(token.grants ?? []).map((grant) => (
                  <div key={grant.id}>
                    <GrantText grant={grant} />
                  </div>
                ))}
              </td>
              <td title={token.lastUsedFrom}>{Number(token.lastUsedMs ?? 0) > 0 ? formatAgo(Number(token.lastUsedMs)) : words.never}</td>
              <td>
                <Ends {...token} />
              </td>
              <td>{token.createdBy}</td>
              <td class="actions">
                <Confirm label={words.rotate} really={words.rotateReally} of={token.name ?? ""} onConfirm={() => rotate(token.id)} />
                <Confirm label={words.delete} of={token.name ?? ""} onConfirm={() => void send(SERVICE + "DeleteToken", { id: token.id })} />
              </td>
            </tr>
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
        <input name="name" required maxLength={100} aria-label={words.name} placeholder={words.name} />
        <GrantFields who={who} />
        <input name="days" type="number" min={1} class="short" aria-label={words.validDays} placeholder={words.validDays} />
        <button type="submit" disabled={isSending}>
          {words.createToken}
        </button>
      </form>
    </section>
  );
}
