"""SQL for people: the views, the functions, the cookbook as it stands in the documentation."""

import datetime
import re
import subprocess
import unittest

from pprof import Profile
from questions import CPU
from server import HEARTH, ROOT, Server, eventually, now_ms, server_environment, sql

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]
HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
MS = 1_000_000
CHECKOUT = '{service_name="checkout"}'

# A whole step; "now" for the queries lies a minute after it.
BASE = now_ms() // (10 * MINUTE) * 10 * MINUTE
NOW = BASE + MINUTE // 2


def stamp(ms):
    when = datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc)
    return when.strftime("%Y-%m-%d %H:%M:%S.%f+00")


def cpu(ns, stacks, period=10_000_000):
    profile = Profile(TYPES, period=period, time_ns=ns, duration_ns=10_000_000_000)
    for stack, value in stacks:
        profile.add(stack, [1, value])
    return profile.encode()


def blocks(path):
    """{number of the heading: SQL}."""
    out, number = {}, 0
    text = (ROOT / path).read_text()
    for heading, code in re.findall(r"^## (\d+)\.|^```sql\n(.*?)^```", text, re.M | re.S):
        if heading:
            number = int(heading)
        else:
            assert number not in out, "two blocks below %d" % number
            out[number] = code
    return out


class Sql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = s = Server("--builder=false", "--reject-older-than", "30d")
        checkout = {"__name__": "process_cpu", "service_name": "checkout", "team": "payments"}
        search = {"__name__": "process_cpu", "service_name": "search", "team": "discovery", "pod": "c"}
        before, after = BASE - 25 * MINUTE, BASE - 15 * MINUTE
        a = [(["main", "pay"], 6_000_000_000), (["main", "log"], 2_000_000_000)]
        b = [(["main", "pay"], 18_000_000_000), (["main", "log"], 2_000_000_000)]
        s.push(cpu(before * MS, a), {**checkout, "pod": "a"})
        s.push(cpu(before * MS, [(["main", "pay"], 4_000_000_000)]), {**checkout, "pod": "b"})
        s.push(cpu(after * MS, b), {**checkout, "pod": "a"})
        s.push(cpu(after * MS, [(["main", "pay"], 4_000_000_000)]), {**checkout, "pod": "b"})
        s.push(cpu((BASE - 5 * MINUTE) * MS, [(["main", "find"], 10_000_000_000)]), search)
        s.push(cpu((before - 7 * DAY) * MS, [(["main", "pay"], 8_000_000_000)]), {**checkout, "pod": "a"})
        for minutes, used in ((20, 500), (6, 2048)):
            heap = Profile(HEAP, ("space", "bytes"), 524288, (BASE - minutes * MINUTE) * MS)
            heap.add(["main", "cache"], [1, 9000, 1, used])
            s.push(heap.encode(), {"__name__": "memory", "service_name": "search", "pod": "c"})
        cls.url = s.postgres_url()
        cls.recipes = blocks("docs/how-to/sql-cookbook.md")
        sql(cls.url, cls.recipes[0])
        sql(cls.url, "INSERT INTO deploys VALUES ('checkout', 'v2', '%s')" % stamp(BASE - 20 * MINUTE))
        cls.materialize(CHECKOUT, "--from", str(BASE - HOUR), "--to", str(BASE), "--type", CPU)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def materialize(cls, selector, *options, url=True):
        done = subprocess.run(
            [HEARTH, "sql", "--materialize", selector, "--url", "http://127.0.0.1:%d" % cls.server.port, *options]
            + (["--database-url", cls.url] if url else []),
            capture_output=True, text=True, env=server_environment(),
        )
        assert done.returncode == 0, done.stderr
        return done

    def ask(self, text):
        return sql(self.url, "SET timezone = 'UTC'; " + text)

    def recipe(self, number):
        return self.ask(self.recipes[number].replace("now()", "'%s'::timestamptz" % stamp(NOW)))

    def refused(self, text):
        with self.assertRaises(AssertionError) as caught:
            self.ask(text)
        return str(caught.exception)

    # ---- the cookbook ----

    def test_the_cookbook_has_ten_queries(self):
        self.assertEqual(sorted(self.recipes), list(range(11)))

    def test_1_services_by_cpu(self):
        self.assertEqual(self.recipe(1), [["checkout", "36.0"], ["search", "10.0"]])

    def test_2_cost_of_teams(self):
        self.assertEqual(self.recipe(2), [["payments", "0.0004"], ["discovery", "0.0001"]])

    def test_3_minute_by_minute(self):
        def minute(at):
            return stamp(at)[:16] + ":00+00"

        self.assertEqual(
            self.recipe(3), [[minute(BASE - 25 * MINUTE), "12.0"], [minute(BASE - 15 * MINUTE), "24.0"]]
        )

    def test_4_before_and_after_a_deploy(self):
        self.assertEqual(self.recipe(4), [["checkout", "v2", "6000", "12000"]])

    def test_5_week_over_week(self):
        self.assertEqual(self.recipe(5), [["checkout", "36.0", "8.0"], ["search", "10.0", "0.0"]])

    def test_6_pods_that_stand_out(self):
        self.assertEqual(self.recipe(6), [["checkout", "a", "1.56"]])

    def test_7_processes_that_stopped_sending_are_listed(self):
        last = stamp(BASE - 15 * MINUTE)[:19] + "+00"
        self.assertEqual(self.recipe(7), [["checkout", "a", last], ["checkout", "b", last]])

    def test_8_memory_in_use(self):
        self.assertEqual(self.recipe(8), [["search", "c", "2048 bytes"]])

    def test_9_top_functions(self):
        self.assertEqual(
            self.recipe(9),
            [
                ["pay", "32000000000", "32000000000", "88.89"],
                ["log", "4000000000", "4000000000", "11.11"],
                ["main", "0", "36000000000", "0.00"],
            ],
        )

    def test_10_functions_that_grew(self):
        self.assertEqual(
            self.recipe(10), [["main", "100.0", "100.0"], ["pay", "83.3", "91.7"], ["log", "16.7", "8.3"]]
        )

    # ---- views ----

    def test_series_have_their_labels_and_types(self):
        rows = self.ask(
            "SELECT tenant, service, labels->>'pod', labels->>'team', labels->>'service_name', array_length(profile_types, 1)"
            " FROM hearth.series WHERE service = 'checkout' ORDER BY 3"
        )
        self.assertEqual(
            rows, [["anonymous", "checkout", pod, "payments", "checkout", "2"] for pod in ("a", "b")]
        )

    def test_a_profile_has_a_row_for_each_type(self):
        rows = self.ask(
            "SELECT profile_type, value, n_samples, duration, period, ts FROM hearth.profiles"
            " WHERE service = 'checkout' AND labels->>'pod' = 'a' AND ts = %d ORDER BY 1" % ((BASE - 15 * MINUTE) * MS)
        )
        rest = ["2", "00:00:10", "10000000", str((BASE - 15 * MINUTE) * MS)]
        self.assertEqual(
            rows,
            [[CPU, "20000000000"] + rest, ["process_cpu:samples:count:cpu:nanoseconds", "2"] + rest],
        )

    def test_a_condition_on_ts_reads_only_its_days(self):
        plan = self.ask(
            "EXPLAIN SELECT sum(value) FROM hearth.profiles WHERE ts >= hearth.ns(now() - interval '1 minute')"
        )
        text = "\n".join(line[0] for line in plan)
        week_ago = stamp(BASE - 25 * MINUTE - 7 * DAY)[:10].replace("-", "")
        self.assertNotRegex(text, r"Seq Scan on profile_%s(?! .*never)" % week_ago)
        self.assertRegex(text, r"Subplans Removed|profile_")

    def test_late_profiles_are_shown_and_hidden_ones_are_not(self):
        labels = {"__name__": "process_cpu", "service_name": "moved", "pod": "x"}
        for minutes in (3, 2, 1):
            self.server.push(cpu((BASE - minutes * MINUTE) * MS, [(["main"], minutes)]), labels)
        view = "SELECT string_agg(value::text, ' ' ORDER BY value) FROM hearth.%s WHERE service = 'moved' AND profile_type = '" + CPU + "'"
        self.assertEqual(self.ask(view % "profiles"), [["1 2 3"]])
        own = "(SELECT service_id FROM hearth_data.service WHERE name = 'moved')"
        self.ask(
            "WITH gone AS (DELETE FROM hearth_data.profile WHERE service_id = %s AND ts = %d RETURNING *)"
            " INSERT INTO hearth_data.profile_late SELECT * FROM gone" % (own, (BASE - 3 * MINUTE) * MS)
        )
        self.assertEqual(self.ask(view % "profiles"), [["1 2 3"]])
        self.assertEqual(self.ask(view % "totals"), [["1 2 3"]])
        self.ask(
            "INSERT INTO hearth_data.tombstone SELECT service_id, 99, %d, %d, array_agg(series_id) FROM hearth.series"
            " WHERE service = 'moved' GROUP BY service_id" % ((BASE - 2 * MINUTE) * MS, (BASE - 2 * MINUTE) * MS)
        )
        self.assertEqual(self.ask(view % "profiles"), [["1 3"]])
        self.assertEqual(self.ask(view % "totals"), [["1 3"]])
        self.ask("DELETE FROM hearth_data.tombstone WHERE erasure_id = 99")

    def test_totals_continue_with_hours_and_days_where_profiles_are_compacted(self):
        """The rows that the builder would write, for three days: days, then hours, then profiles."""
        day = BASE // DAY * DAY
        labels = {"__name__": "process_cpu", "service_name": "old"}
        # One profile an hour, worth its number; all of them stay in the table, as after compaction.
        starts = list(range(day - 3 * DAY, day - DAY, HOUR))
        for k, start in enumerate(starts):
            self.server.push(cpu((start + MINUTE) * MS, [(["main"], 1 << k % 24)]), labels)
        total = sum(1 << k % 24 for k in range(len(starts)))
        answer = (
            "SELECT resolution, count(*), sum(value), sum(n_profiles) FROM hearth.totals WHERE service = 'old'"
            " AND profile_type = '" + CPU + "' GROUP BY 1 ORDER BY 1"
        )
        self.assertEqual(self.ask(answer), [["00:00:00", "48", str(total), "48"]])
        ids = "(SELECT service_id, series_id FROM hearth.series WHERE service = 'old') i"
        block = (
            "INSERT INTO hearth_data.%s SELECT p.service_id, p.series_id, p.ts / %d * %d, 1, 1, count(*),"
            " ARRAY[sum(p.totals[1]), sum(p.totals[2])]::int8[], NULL, '', '{}' FROM hearth_data.profile p JOIN " + ids +
            " USING (service_id, series_id) WHERE %s GROUP BY 1, 2, 3"
        )
        for start in (day - 3 * DAY, day - 2 * DAY):
            name = stamp(start)[:10].replace("-", "")
            for parent in ("roll_1h", "roll_1d", "hour_totals"):
                self.ask(
                    "CREATE TABLE IF NOT EXISTS hearth_data.%s_%s PARTITION OF hearth_data.%s FOR VALUES FROM (%d) TO (%d)"
                    % (parent, name, parent, start * MS, (start + DAY) * MS)
                    if not self.ask("SELECT to_regclass('hearth_data.%s_%s') IS NOT NULL" % (parent, name)) == [["t"]]
                    else "SELECT 1"
                )
        # Hours are gone for the first day, and the second is compacted up to noon.
        self.ask(block % ("roll_1d", DAY * MS, DAY * MS, "true"))
        self.ask(block % ("roll_1h", HOUR * MS, HOUR * MS, "ts >= %d" % ((day - 2 * DAY) * MS)))
        noon = day - 2 * DAY + 12 * HOUR
        self.ask(
            "INSERT INTO hearth_data.roll_state SELECT service_id, %d, %d, %d, 1 FROM %s" % (day * MS, day * MS, noon * MS, ids)
        )
        first = sum(1 << k for k in range(24))
        second = sum(1 << k for k in range(12))
        self.assertEqual(
            self.ask(answer),
            [
                ["00:00:00", "12", str(first - second), "12"],
                ["01:00:00", "12", str(second), "12"],
                ["1 day", "1", str(first), "24"],
            ],
        )
        # Two hours of each day are absent: their totals answer, and the first day is no longer one sum.
        absent = ", ".join("3600000000000, %d, %d, 3" % (start * MS, (start + 2 * HOUR) * MS) for start in (day - 3 * DAY, day - 2 * DAY))
        hours = "t0 < %d OR t0 BETWEEN %d AND %d" % ((day - 3 * DAY + 2 * HOUR) * MS, (day - 2 * DAY) * MS, (day - 2 * DAY + HOUR) * MS)
        self.ask(
            "INSERT INTO hearth_data.hour_totals SELECT p.service_id, p.series_id, p.ts / %d * %d, 1, count(*), '', '{}',"
            " ARRAY[sum(p.totals[1]), sum(p.totals[2])]::int8[] FROM hearth_data.profile p JOIN %s USING (service_id, series_id)"
            " WHERE ts < %d GROUP BY 1, 2, 3" % (HOUR * MS, HOUR * MS, ids, (day - DAY) * MS)
        )
        lacking = (
            "BEGIN; DELETE FROM hearth_data.roll_1h r USING %s WHERE r.service_id = i.service_id AND (%s);"
            " UPDATE hearth_data.roll_state r SET absent = ARRAY[%s] FROM %s WHERE r.service_id = i.service_id; %s; ROLLBACK"
        )
        self.assertEqual(
            self.ask(lacking % (ids, hours, absent, ids, answer)),
            [["00:00:00", "12", str(first - second), "12"], ["01:00:00", "14", str(second + 3), "14"]],
        )
        count = self.ask("SELECT count(*) FROM hearth.profiles WHERE service = 'old' AND profile_type = '%s'" % CPU)
        self.assertEqual(count, [["12"]])
        self.assertEqual(
            self.ask("SELECT profiles_from, hours_until FROM hearth.coverage WHERE service = 'old'"),
            [[stamp(noon)[:19] + "+00"] * 2],
        )
        self.assertEqual(
            self.ask("SELECT profiles_from IS NOT NULL, hours_until FROM hearth.coverage WHERE service = 'checkout'"),
            [["t", ""]],
        )
        # A deletion hides the blocks that it touches.
        self.ask(
            "INSERT INTO hearth_data.tombstone SELECT service_id, 98, %d, %d, ARRAY[series_id] FROM %s"
            % ((noon - HOUR) * MS, (noon - HOUR) * MS, ids)
        )
        self.assertEqual(self.ask(answer)[1], ["01:00:00", "11", str(second - (1 << 11)), "11"])
        self.ask("DELETE FROM hearth_data.tombstone WHERE erasure_id = 98")

    def test_totals_are_unchanged_by_compaction(self):
        server = Server("--builder-interval", "100ms", "--rollup-grace", "1ms", "--compact-after", "1ms")
        self.addCleanup(server.stop)
        base = BASE // HOUR * HOUR - 5 * HOUR
        for k in range(36):
            labels = {"__name__": "process_cpu", "service_name": "real", "pod": "p%d" % (k % 3)}
            server.push(cpu((base + k * 5 * MINUTE) * MS, [(["main", "f%d" % k], k + 1)]), labels)

        def totals():
            return server.sql(
                "SELECT labels->>'pod', date_trunc('hour', time), sum(value), sum(n_profiles) FROM hearth.totals"
                " WHERE profile_type = '%s' GROUP BY 1, 2 ORDER BY 1, 2" % CPU
            )

        wanted = totals()
        self.assertEqual(sum(int(row[2]) for row in wanted), 36 * 37 // 2)

        def compacted():
            self.assertEqual(totals(), wanted)
            return server.sql("SELECT count(*) FROM hearth.profiles") == [["0"]]

        eventually(compacted, 60, what="compaction")
        self.assertEqual(totals(), wanted)
        self.assertEqual(
            server.sql("SELECT DISTINCT resolution FROM hearth.totals"), [["01:00:00"]]
        )
        covered = server.sql("SELECT profiles_from = hours_until FROM hearth.coverage")
        self.assertEqual(covered, [["t"]])

    # ---- stack traces ----

    def test_a_missing_materialization_names_the_command_to_run(self):
        message = self.refused(
            "SELECT * FROM hearth.top('{service_name=\"search\"}', '%s', '%s')" % (stamp(BASE - HOUR), stamp(BASE))
        )
        self.assertIn("is not materialized", message)
        self.assertIn("hearth sql --materialize '{service_name=\"search\"}' --from ", message)
        within = self.refused(
            "SELECT * FROM hearth.samples('%s', '%s', '%s')" % (CHECKOUT, stamp(BASE - 25 * MINUTE), stamp(BASE))
        )
        self.assertIn("whole steps", within)

    def test_steps_are_half_open_to_the_nanosecond(self):
        labels = {"__name__": "process_cpu", "service_name": "edges"}
        edge = (BASE - 40 * MINUTE) * MS
        for ns, value in ((edge - 1, 1), (edge, 2), (edge + 1, 4), (edge - MS, 8), (edge + 10 * MINUTE * MS - 1, 16)):
            self.server.push(cpu(ns, [(["main", "a\tb \"q\" \\ ü"], value)]), labels)
        self.materialize("edges", "--from", str(BASE - HOUR), "--to", str(BASE), "--type", CPU)
        rows = self.ask(
            "SELECT time, value, stack[2] = E'a\\tb \"q\" \\\\ ü' FROM hearth.samples('{service_name=\"edges\"}', '%s', '%s') ORDER BY 1"
            % (stamp(BASE - HOUR), stamp(BASE))
        )
        self.assertEqual(
            rows,
            [[stamp(BASE - 50 * MINUTE)[:19] + "+00", "9", "t"], [stamp(BASE - 40 * MINUTE)[:19] + "+00", "22", "t"]],
        )

    def test_materializing_again_replaces_and_keeps_types_apart(self):
        selector = '{service_name="checkout",pod="b"}'
        options = ["--from", str(BASE - HOUR), "--to", str(BASE)]
        count = "SELECT count(*), count(DISTINCT profile_type) FROM hearth.materialized WHERE selector = '%s'" % selector
        for _ in range(2):
            self.materialize(selector, *options, "--type", CPU)
        self.assertEqual(self.ask(count), [["1", "1"]])
        self.materialize(selector, *options, "--type", "process_cpu:samples:count:cpu:nanoseconds")
        self.assertEqual(self.ask(count), [["2", "2"]])
        range_ = "'%s', '%s'" % (stamp(BASE - HOUR), stamp(BASE))
        self.assertIn("profile_type => one of", self.refused("SELECT * FROM hearth.samples('%s', %s)" % (selector, range_)))
        rows = self.ask("SELECT sum(value) FROM hearth.samples('%s', %s, '%s')" % (selector, range_, CPU))
        self.assertEqual(rows, [["8000000000"]])
        self.ask("DELETE FROM hearth.materialized WHERE selector = '%s'" % selector)
        self.assertEqual(
            self.ask("SELECT count(*) FROM hearth.sample WHERE materialized_id NOT IN (SELECT materialized_id FROM hearth.materialized)"),
            [["0"]],
        )

    def test_psql_runs_the_printed_script(self):
        selector = '{service_name="search",pod=~"it\'s|c"}'
        done = self.materialize(
            selector, "--from", str(BASE - HOUR), "--to", str(BASE + HOUR), "--type", CPU, url=False
        )
        self.assertTrue(done.stdout.startswith("BEGIN;\n") and done.stdout.endswith("COMMIT;\n"))
        psql = subprocess.run(
            ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", self.url], input=done.stdout, capture_output=True, text=True
        )
        self.assertEqual((psql.returncode, psql.stderr), (0, ""))
        rows = self.ask(
            "SELECT function, self FROM hearth.top('%s', '%s', '%s')"
            % (selector.replace("'", "''"), stamp(BASE - HOUR), stamp(BASE))
        )
        self.assertEqual(rows, [["find", "10000000000"], ["main", "0"]])
        # Not beyond now: that step is not over.
        self.assertEqual(
            self.ask("SELECT max(to_time) <= now() FROM hearth.materialized WHERE selector = '%s'" % selector.replace("'", "''")),
            [["t"]],
        )

    def test_a_failing_psql_leaves_nothing_and_is_reported(self):
        done = subprocess.run(
            [HEARTH, "sql", "--materialize", CHECKOUT, "--url", "http://127.0.0.1:%d" % self.server.port,
             "--since", "1h", "--type", CPU, "--database-url", "host=/nowhere dbname=x"],
            capture_output=True, text=True, env=server_environment(),
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere", done.stderr)

    # ---- rights ----

    def test_a_reader_needs_no_rights_on_the_tables_below(self):
        page = (ROOT / "docs/how-to/sql.md").read_text()
        self.ask(re.search(r"^## A role that reads\n.*?^```sql\n(.*?)^```", page, re.M | re.S).group(1))
        as_reader = "SET ROLE hearth_reader; "
        self.assertEqual(self.ask(as_reader + "SELECT count(*) > 5 FROM hearth.profiles"), [["t"]])
        self.assertEqual(self.ask(as_reader + self.recipes[9].replace("now()", "'%s'::timestamptz" % stamp(NOW)))[0][0], "pay")
        for text in ("SELECT * FROM hearth_data.profile", "DELETE FROM hearth.materialized"):
            self.assertIn("permission denied", self.refused(as_reader + text))

    def test_everything_in_the_schema_has_a_comment(self):
        nameless = self.ask(
            "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'hearth'::regnamespace AND c.relkind IN ('v', 'r')"
            " AND obj_description(c.oid, 'pg_class') IS NULL UNION ALL SELECT p.proname FROM pg_proc p"
            " WHERE p.pronamespace = 'hearth'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL"
        )
        self.assertEqual(nameless, [])


if __name__ == "__main__":
    unittest.main()
