"""async-profiler and pprof tasks: agents ask for one every 20 s, so short ones are handed out longer than they last, several
wait for their turn, and the state says which. Tasks last minutes, so what happened is moved into the past."""

import itertools
import unittest

import server
import tasks
from agents import Instance
from tasks import MINUTE, create

EVENTS = ("cpu", "heap", "block", "mutex", "goroutine", "threadcreate", "allocs")


class Turns(unittest.TestCase):
    numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()
        cls.other = server.Server(database_url=cls.server.postgres_url())

    @classmethod
    def tearDownClass(cls):
        cls.other.stop()
        cls.server.stop()

    def setUp(self):
        self.instance = Instance(self.server, "service-%d" % next(self.numbers), "i")
        self.instance.report()

    def pprof(self, event, **more):
        return create(self.server, kind="PPROF", service=self.instance.service, instances=["i"], events=[event], dumpPeriodMs=1, **more)

    def async_profiler(self, seconds):
        return create(self.server, kind="ASYNC_PROFILER", service=self.instance.service, instances=["i"], events=["cpu"],
                      durationMs=seconds * 1000)

    def ask(self, method):
        """The id of the task that the instance is told of, or None."""
        found = self.instance.query_tasks(method)
        self.assertLessEqual(len(found), 1)
        return found[0][1]["TaskId"] if found else None

    def age(self, seconds):
        tasks.age(self.server, seconds * 1000)

    def expect(self, task_id, state, part):
        found, reason = tasks.state(self.server, task_id)
        self.assertEqual(found, state, reason)
        self.assertIn(part, reason)

    def test_all_tasks_that_are_created_together_are_delivered(self):
        self.assertIsNone(self.ask(Instance.PPROF))
        made = [self.pprof(event) for event in EVENTS]
        told = []
        for n in range(len(made)):
            self.age(20)
            self.expect(made[-1], "WAITING_FOR_AGENT", "%d other pprof task" % (6 - n) if n < 6 else "is told when it asks again")
            told.append(self.ask(Instance.PPROF))
        self.assertEqual(told, made)

        # Each runs its minute from when it was told, the first one 140 s ago.
        self.assertIsNone(self.ask(Instance.PPROF))
        self.expect(made[6], "NOTIFIED", "nothing has come yet, it ends at")
        self.age(40)
        self.expect(made[0], "NOTHING_SAMPLED", "uploaded no file")
        self.expect(made[6], "NOTIFIED", "nothing has come yet, it ends at")

    def test_a_task_shorter_than_the_poll_interval_of_agents_is_delivered(self):
        task_id = self.async_profiler(5)
        self.age(19)
        self.expect(task_id, "WAITING_FOR_AGENT", "no instance of the service has ever asked for async-profiler tasks")
        self.assertEqual(self.ask(Instance.ASYNC), task_id)
        self.expect(task_id, "NOTIFIED", "told at")

    def test_a_task_is_not_delivered_beside_a_running_one(self):
        first = self.async_profiler(30)
        self.age(20)
        self.assertEqual(self.ask(Instance.ASYNC), first)
        self.age(20)
        second = self.async_profiler(30)  # the time of the first is over, but it began 20 s late
        self.assertIsNone(self.ask(Instance.ASYNC))
        self.expect(second, "WAITING_FOR_AGENT", "1 other async-profiler task comes first")
        self.age(25)
        self.assertEqual(self.ask(Instance.ASYNC), second)

    def test_a_task_that_never_gets_its_turn_reports_the_reason(self):
        self.assertIsNone(self.ask(Instance.PPROF))
        first = self.pprof("mutex", durationMs=15 * MINUTE)
        self.age(14 * 60)
        self.assertEqual(self.ask(Instance.PPROF), first)
        self.age(2 * 60)
        second = self.pprof("mutex")
        self.instance.server = self.other  # the first one has noted within a minute of the clock that the instance asks
        self.assertIsNone(self.ask(Instance.PPROF))
        self.age(301)
        self.assertIsNone(self.ask(Instance.PPROF))
        self.expect(second, "NEVER_DELIVERED", "had 1 other pprof task to run")

    def test_a_task_that_has_ended_delays_no_other_task(self):
        first = self.pprof("heap")
        self.assertEqual(self.ask(Instance.PPROF), first)
        self.age(20)
        finished = "INSERT INTO hearth_data.task_log VALUES ('%s', 'i', '', 2, %d, %d, '')"
        self.server.sql(finished % (first, server.now_ms(), server.now_ms()))
        self.age(20)
        second = self.pprof("heap", startMs=server.now_ms() + 25_000)
        self.age(60 + 301)
        self.expect(second, "NEVER_DELIVERED", "no matching agent asked for it before")

    def test_an_unclaimed_task_is_handed_out_until_it_is_cancelled_or_five_minutes_have_passed(self):
        first, second = self.pprof("heap"), self.pprof("cpu")
        self.age(200)
        answer = self.server.connect(tasks.TASKS + "CancelTask", {"taskId": first})
        self.assertIn("none will: nothing runs", answer["note"])
        self.age(101)
        self.assertIsNone(self.ask(Instance.PPROF))
        self.expect(second, "NEVER_DELIVERED", "before it stopped being handed out at")
        self.expect(first, "CANCELLED", "before anybody was told")


if __name__ == "__main__":
    unittest.main()
