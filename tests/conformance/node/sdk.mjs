// sdk.mjs URL APPLICATION: @pyroscope/nodejs as in its manual, on a program that burns processor time and memory.
import Pyroscope from "@pyroscope/nodejs";

const [serverAddress, appName] = process.argv.slice(2);
const authToken = process.env.PYROSCOPE_AUTH_TOKEN; // a bearer token
const kept = [];

function burnProcessor(until) {
  let n = 1;
  while (Date.now() < until) {
    for (let i = 0; i < 1e5; i++) {
      n = (n * 1103515245 + i) % 2147483648;
    }
  }
  return n;
}

function burnMemory() {
  for (let i = 0; i < 2000; i++) {
    kept.push(new Array(10000).fill(i));
  }
}

Pyroscope.init({
  serverAddress, appName, authToken, flushIntervalMs: 2000, wall: { samplingDurationMs: 2000, collectCpuTime: true }, tags: { region: "eu" },
});
Pyroscope.start();
for (let round = 0; round < 6; round++) {
  burnProcessor(Date.now() + 1000);
  burnMemory();
  await new Promise((resolve) => setTimeout(resolve, 100)); // the profiler's timers run between
}
await Pyroscope.stop();
