// No profiles yet: how to send the first one, with this server's address filled in.
import { useEffect, useState } from "preact/hooks";
import { refreshes } from "../api/connect";
import { texts } from "../app/settings";

function snippets(origin: string, host: string): Record<string, string> {
  return {
    "hearth record": `hearth record --url ${origin} --label service_name=my-service -- ./my-program`,
    Go: `pyroscope.Start(pyroscope.Config{
  ApplicationName: "my-service",
  ServerAddress:   "${origin}",
})`,
    Java: `java -javaagent:pyroscope.jar \\
  -Dpyroscope.application.name=my-service -Dpyroscope.server.address=${origin} -jar app.jar`,
    Python: `import pyroscope
pyroscope.configure(application_name="my-service", server_address="${origin}")`,
    Node: `const Pyroscope = require("@pyroscope/nodejs");
Pyroscope.init({ appName: "my-service", serverAddress: "${origin}" });
Pyroscope.start();`,
    Ruby: `Pyroscope.configure do |config|
  config.application_name = "my-service"
  config.server_address = "${origin}"
end`,
    Rust: `let agent = PyroscopeAgent::builder("${origin}", "my-service")
    .backend(pprof_backend(PprofConfig::new().sample_rate(100)))
    .build()?;`,
    ".NET": `PYROSCOPE_APPLICATION_NAME=my-service PYROSCOPE_SERVER_ADDRESS=${origin}
CORECLR_ENABLE_PROFILING=1 dotnet app.dll`,
    perf: `perf record -g -- ./my-program
hearth upload perf.data --url ${origin} --label service_name=my-service`,
    OpenTelemetry: `# otelcol --feature-gates=service.profilesSupport
exporters:
  otlp/hearth:
    endpoint: ${host}
    tls: { insecure: ${origin.startsWith("http:")} }
service:
  pipelines:
    profiles: { receivers: [otlp], exporters: [otlp/hearth] }`,
    Datadog: `DD_TRACE_AGENT_URL=${origin} DD_PROFILING_ENABLED=true DD_SERVICE=my-service ddtrace-run python app.py`,
    SkyWalking: `-javaagent:skywalking-agent.jar
  -Dskywalking.agent.service_name=my-service -Dskywalking.collector.backend_service=${host}`,
  };
}

const LOOK_AGAIN_MS = 5000;

export function Empty() {
  const [copied, setCopied] = useState("");
  const [name, setName] = useState("hearth record");
  const words = texts.value.empty;
  const all = snippets(location.origin, location.host);

  useEffect(() => {
    const timer = setInterval(() => refreshes.value++, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, []);

  return (
    <section class="sheet">
      <h1>{words.title}</h1>
      <p>{words.older}</p>
      <div class="tabs" role="group">
        {Object.keys(all).map((each) => (
          <button key={each} type="button" aria-pressed={each === name} onClick={() => setName(each)}>
            {each}
          </button>
        ))}
      </div>
      <pre class="code snippet" tabIndex={0}>
        {all[name]}
      </pre>
      <p>
        <button
          type="button"
          class="primary"
          onClick={() => navigator.clipboard.writeText(all[name]).then(() => setCopied(name))}
        >
          {copied === name ? words.copied : words.copy}
        </button>
      </p>
      <p class="muted" role="status">
        {words.waiting}
      </p>
    </section>
  );
}
