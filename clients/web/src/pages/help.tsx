import { useAnswer } from "../api/use-answer";
import { texts } from "../app/settings";

export function Help() {
  const words = texts.value.help;
  const version = useAnswer("version", async (abort) => {
    const response = await fetch("/api/v1/status/buildinfo", { signal: abort });
    return ((await response.json()) as { data?: { version?: string } }).data?.version ?? "";
  }).value;
  return (
    <section class="sheet">
      <h1>{words.title}</h1>
      {words.paragraphs.map((paragraph) => (
        <p key={paragraph}>{paragraph}</p>
      ))}
      <p>
        <a class="alone" href="/docs/">{words.documents}</a>
      </p>
      <h2>{words.keys}</h2>
      <dl class="keys">
        {words.keyList.map(([key, what]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <p class="muted">
        Hearth · {words.version} {version}
      </p>
    </section>
  );
}
