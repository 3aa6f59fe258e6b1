// The log-in stands in the place of the page while the server knows no caller. The address stays, so that the page is
// there afterwards.
import { useEffect, useState } from "preact/hooks";
import { needsLogin, readError, refreshes } from "../api/connect";
import { texts } from "../app/settings";

/** Whether log-in at an issuer leads anywhere: the server then redirects, and otherwise refuses. */
function useIssuer(login: string): boolean {
  const [hasIssuer, setHasIssuer] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    fetch(login, { method: "HEAD", redirect: "manual", signal: abort.signal }).then(
      (answer) => setHasIssuer(answer.type === "opaqueredirect"),
      () => setHasIssuer(false),
    );
    return () => abort.abort();
  }, [login]);
  return hasIssuer;
}

export function Login() {
  const [message, setMessage] = useState("");
  const words = texts.value.login;
  const issuerLogin = "/api/v1/oidc/login?return=" + encodeURIComponent(location.pathname + location.search);
  const hasIssuer = useIssuer(issuerLogin);

  const logIn = async (form: HTMLFormElement) => {
    const fields = new FormData(form);
    const response = await fetch("/api/v1/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ user: fields.get("user"), password: fields.get("password") }),
    });
    if (response.ok) {
      needsLogin.value = false;
      refreshes.value++;
    } else {
      setMessage((await readError(response)).message);
    }
  };

  return (
    <section class="sheet">
      <h1>{words.title}</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          logIn(event.currentTarget).catch((error: Error) => setMessage(error.message));
        }}
      >
        <label>
          {words.user} <input name="user" autocomplete="username" required />
        </label>
        <label>
          {words.password} <input name="password" type="password" autocomplete="current-password" required />
        </label>
        <button type="submit" class="primary">
          {words.submit}
        </button>
      </form>
      {message !== "" && (
        <p class="error" role="alert">
          {message}
        </p>
      )}
      {hasIssuer && (
        <p>
          <a href={issuerLogin}>{words.oidc}</a>
        </p>
      )}
      <p class="muted">{words.hint}</p>
    </section>
  );
}
