"""bench.py --wall: what row-level security costs: questions of the API with and without it, CPU of hearthd and PostgreSQL.

The data of bench.py --api. Servers with and without it alternate on one database; each number is the median of the rounds.
"""

import statistics
import time

from api import Api, DAY, HOUR, PODS, SELECTOR, STEP
from measure import Running, say

ROUNDS = 5


class Wall(Api):
    def few(self, end):
        import questions

        of_day, of_hour = self.questions(end, DAY), self.questions(end, HOUR)
        tasks = "hearth.v1.TaskService/ListTasks"
        return {
            "merge, 24 h": of_day["SelectMergeStacktraces"], "merge, 1 h": of_hour["SelectMergeStacktraces"],
            "time series by pod, 24 h": of_day["SelectSeries by pod"], "label values, 24 h": of_day["LabelValues"],
            "list of tasks": (tasks, []), "settings": ("settings.v1.SettingsService/Get", []),
        }

    def compare(self, running, state, end, options):
        seen = {}
        for _ in range(ROUNDS):
            for wall in ("off", "require"):
                running.restart("--row-level-security=" + wall, *options)
                for name, (method, fields) in self.few(end).items():
                    took = running.ask(method, fields, self.seconds, warm=5, least=20)
                    seen.setdefault((name, wall), []).append(took["hearthd_ms"] + took["postgres_ms"])
        rows = []
        for name in self.few(end):
            off, on = (statistics.median(seen[name, wall]) for wall in ("off", "require"))
            best = [min(seen[name, wall]) for wall in ("off", "require")]
            self.numbers["%s, %s" % (name, state)] = {"off_ms": off, "on_ms": on, "best_off_ms": best[0], "best_on_ms": best[1]}
            rows.append("| %s | %.2f | %.2f | %+.1f %% | %+.0f us | %+.0f us |" % (
                name, off, on, 100 * (on / off - 1), 1000 * (on - off), 1000 * (best[1] - best[0])))
        head = "| question | CPU ms without | with | median | median | of the fastest |\n|---|---|---|---|---|---|"
        return "## %s\n\n%s\n%s\n" % (state, head, "\n".join(rows))

    def run(self):
        bench = self.bench
        bench.make_pool(60)
        running = Running(bench, bench.directory, "--builder=false")
        bench.running, bench.server = running, running.server
        end = int(time.time()) // 600 * 600
        say("loading a day of profiles")
        bench.tool("bench_load_store", running.server.postgres_url(), bench.pool, end, "focus:%d:%d:0:%d" % (PODS, DAY, STEP))
        running.server.sql("VACUUM (ANALYZE)")
        print(self.compare(running, "raw", end, ["--builder=false"]), flush=True)
        running.restart()
        say("waiting for the roll-ups of %s" % SELECTOR)
        self.wait_for_roll_ups(running, end)
        running.server.sql("VACUUM (ANALYZE)")
        print(self.compare(running, "rolled up", end, ["--builder=false"]), flush=True)
        running.server.terminate()
        return self.numbers


def run(bench):
    return Wall(bench).run()
