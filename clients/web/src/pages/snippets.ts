// How programs send their first profile to this server, as the manuals of their libraries have it. What Hearth was tried
// with stands in docs/how-to and tests/conformance.

interface To {
  // Of this server: "http://127.0.0.1:4040" and "127.0.0.1:4040".
  origin: string;
  host: string;
  // Empty where no token is needed.
  token: string;
}

// Lines that are there only with a token.
function lines(...parts: (string | false)[]): string {
  return parts.filter((part) => part !== false).join("\n");
}

export function snippets({ origin, host, token }: To): Record<string, string> {
  const isTls = origin.startsWith("https:");
  const hearthToken = token !== "" && `export HEARTH_TOKEN=${token}`;
  return {
    "hearth record": lines(hearthToken, `hearth record --url ${origin} --label service_name=my-service -- ./my-program`),
    Go: lines(
      `// go get github.com/grafana/pyroscope-go`,
      `pyroscope.Start(pyroscope.Config{`,
      `  ApplicationName: "my-service",`,
      `  ServerAddress:   "${origin}",`,
      token !== "" && `  BasicAuthUser:     "token",`,
      token !== "" && `  BasicAuthPassword: "${token}",`,
      `})`,
    ),
    Java: lines(
      `# agent.jar is io.pyroscope:agent of Maven Central`,
      `export PYROSCOPE_APPLICATION_NAME=my-service`,
      `export PYROSCOPE_SERVER_ADDRESS=${origin}`,
      token !== "" && `export PYROSCOPE_AUTH_TOKEN=${token}`,
      `java -javaagent:agent.jar -jar app.jar`,
    ),
    Python: lines(
      `# pip install pyroscope-io`,
      `import pyroscope`,
      ``,
      `pyroscope.configure(`,
      `    application_name="my-service",`,
      `    server_address="${origin}",`,
      token !== "" && `    basic_auth_username="token",`,
      token !== "" && `    basic_auth_password="${token}",`,
      `)`,
    ),
    "Node.js": lines(
      `// npm install @pyroscope/nodejs`,
      `import Pyroscope from "@pyroscope/nodejs";`,
      ``,
      `Pyroscope.init({`,
      `  appName: "my-service",`,
      `  serverAddress: "${origin}",`,
      token !== "" && `  authToken: "${token}",`,
      `  wall: { collectCpuTime: true },`,
      `});`,
      `Pyroscope.start();`,
    ),
    Rust: lines(
      `// Cargo.toml: pyroscope = { version = "2", features = ["backend-pprof-rs"] }`,
      `use pyroscope::backend::{pprof_backend, BackendConfig, PprofConfig};`,
      `use pyroscope::pyroscope::PyroscopeAgentBuilder;`,
      ``,
      `let backend = pprof_backend(PprofConfig::default(), BackendConfig::default());`,
      `let agent = PyroscopeAgentBuilder::new("${origin}", "my-service", 100, "pyroscope-rs", env!("CARGO_PKG_VERSION"), backend)`,
      token !== "" && `    .basic_auth("token", "${token}")`,
      `    .build()?`,
      `    .start()?;`,
    ),
    Ruby: lines(
      `# gem install pyroscope`,
      `require "pyroscope"`,
      ``,
      `Pyroscope.configure do |config|`,
      `  config.application_name = "my-service"`,
      `  config.server_address = "${origin}"`,
      token !== "" && `  config.basic_auth_username = "token"`,
      token !== "" && `  config.basic_auth_password = "${token}"`,
      `end`,
    ),
    ".NET": lines(
      `# both libraries are of a release of pyroscope-dotnet`,
      `export CORECLR_ENABLE_PROFILING=1`,
      `export CORECLR_PROFILER={BD1A650D-AC5D-4896-B64F-D6FA25D6B26A}`,
      `export CORECLR_PROFILER_PATH=$PWD/Pyroscope.Profiler.Native.so`,
      `export LD_PRELOAD=$PWD/Pyroscope.Linux.ApiWrapper.x64.so`,
      `export PYROSCOPE_PROFILING_ENABLED=1`,
      `export PYROSCOPE_APPLICATION_NAME=my-service`,
      `export PYROSCOPE_SERVER_ADDRESS=${origin}`,
      token !== "" && `export PYROSCOPE_BASIC_AUTH_USER=token`,
      token !== "" && `export PYROSCOPE_BASIC_AUTH_PASSWORD=${token}`,
      `dotnet app.dll`,
    ),
    perf: lines(
      hearthToken,
      `perf record -F 99 -g -o perf.data -- ./my-program`,
      `hearth upload perf.data --url ${origin} --label service_name=my-service`,
    ),
    OpenTelemetry: lines(
      `# otelcol --feature-gates=service.profilesSupport --config this.yaml`,
      `receivers:`,
      `  otlp:`,
      `    protocols: { grpc: {} }`,
      `exporters:`,
      `  otlp/hearth:`,
      `    endpoint: ${host}`,
      `    tls: { insecure: ${!isTls} }`,
      token !== "" && `    headers: { authorization: "Bearer ${token}" }`,
      `service:`,
      `  pipelines:`,
      `    profiles: { receivers: [otlp], exporters: [otlp/hearth] }`,
    ),
    Datadog: lines(
      `export DD_TRACE_AGENT_URL=${origin}`,
      `export DD_SERVICE=my-service DD_PROFILING_ENABLED=true`,
      `ddtrace-run python app.py    # or: node -r dd-trace/init app.js, java -javaagent:dd-java-agent.jar -jar app.jar`,
    ),
    SkyWalking: lines(
      `java -javaagent:skywalking-agent.jar \\`,
      `  -Dskywalking.agent.service_name=my-service \\`,
      token !== "" && `  -Dskywalking.agent.authentication=${token} \\`,
      isTls && `  -Dskywalking.agent.force_tls=true \\`,
      `  -Dskywalking.collector.backend_service=${host} \\`,
      `  -jar app.jar`,
    ),
  };
}
