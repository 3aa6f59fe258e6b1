"""pprof tasks whose values Go counts from the start of the process (allocations, contentions): each event has profiles of its own,
and what two files of one process share is counted once, in ordinary queries and in AnalyzeUploads."""

import itertools
import unittest

import server
import task_data as agent
import tasks
import wire
from agents import Instance
from pprof import Decoded, Profile
from tasks import create

BLOCK = [("contentions", "count"), ("delay", "nanoseconds")]
HEAP = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
DELAY = "%s:delay:nanoseconds:contentions:count"
ALLOCS = "allocs:alloc_space:bytes:space:bytes"


class Cumulative(unittest.TestCase):
    numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.service = "service-%d" % next(self.numbers)
        self.instance = self.start("pod-1")

    def start(self, name):
        """The process of an instance: it has no cursor."""
        instance = Instance(self.server, self.service, name)
        instance.report()
        return instance

    def run_task(self, event, content, instance=None):
        """The instance is told of a task for the event and uploads its file; the task's id."""
        instance = instance or self.instance
        task_id = create(self.server, kind="PPROF", service=self.service, instances=[instance.instance], events=[event], dumpPeriodMs=1)
        self.assertEqual([a["TaskId"] for _, a in instance.query_tasks(Instance.PPROF)], [task_id])
        self.assertEqual(agent.upload(self.server, agent.PPROF, self.service, instance.instance, task_id, content), 0)
        server.eventually(lambda: tasks.state(self.server, task_id)[0] == "FINISHED", what="the file")
        tasks.age(self.server, 3 * tasks.MINUTE)  # another task of the event does not overlap
        return task_id

    def profile(self, types, period_type, *stacks):
        p = Profile(types, period_type=period_type, period=1, time_ns=server.now_ms() * 1_000_000)
        for stack, values in stacks:
            p.add(stack, values)
        return p.encode()

    def contended(self, *stacks):
        return self.profile(BLOCK, ("contentions", "count"), *stacks)

    def heap(self, *stacks):
        return self.profile(HEAP, ("space", "bytes"), *stacks)

    def stored(self, kind):
        """{leaf: value} of the service's ordinary profiles."""
        now = server.now_ms()
        found = self.server.merge_pprof(kind, '{service_name="%s"}' % self.service, now - 600_000, now + 60_000)
        out = {}
        for lines, value in (Decoded(found).by_stack(0) if found else {}).items():
            out[lines[0][0]] = out.get(lines[0][0], 0) + value
        return out

    def analyze(self, task_id, **more):
        """({leaf: value}, tip)"""
        answer = self.server.connect(agent.TASKS + "AnalyzeUploads", {"taskId": task_id, **more})
        values = {e["codeSignature"].split(":")[0]: int(e.get("self", 0)) for e in answer["elements"] if int(e.get("self", 0))}
        return values, answer.get("tip", "")

    def test_block_and_mutex_are_profiles_of_their_own(self):
        self.run_task("block", self.contended((["main", "receive"], [2, 183])))
        self.run_task("mutex", self.contended((["main", "unlock"], [3, 6])))
        self.assertEqual((self.stored(DELAY % "block"), self.stored(DELAY % "mutex")), ({"receive": 183}, {"unlock": 6}))

    def test_a_later_file_of_a_process_counts_only_the_growth_since_the_earlier_one(self):
        first = self.run_task("block", self.contended((["main", "send"], [2, 20]), (["main", "receive"], [1, 10])))
        second = self.run_task("block", self.contended((["main", "receive"], [4, 70]), (["main", "send"], [2, 20]), (["main", "wait"], [1, 5])))
        self.assertEqual(self.stored(DELAY % "block"), {"send": 20, "receive": 70, "wait": 5})
        self.assertEqual(self.analyze(first), ({"send": 20, "receive": 10}, "delay of 1 upload counts since the process started"))
        self.assertEqual(self.analyze(second), ({"receive": 60, "wait": 5}, "delay of 1 upload counts since the file before, of an earlier task"))
        third = self.run_task("block", self.contended((["main", "receive"], [4, 70]), (["main", "send"], [3, 21]), (["main", "wait"], [1, 5])))
        self.assertEqual(self.analyze(third)[0], {"send": 1})
        self.assertEqual(self.stored(DELAY % "block"), {"send": 21, "receive": 70, "wait": 5})

    def test_heap_is_memory_in_use_and_allocs_is_memory_allocated(self):
        heap = self.run_task("heap", self.heap((["main", "make"], [5, 57, 2, 20])))
        self.run_task("allocs", self.heap((["main", "make"], [9, 200, 1, 10]), (["main", "grow"], [1, 71, 0, 0])))
        self.assertEqual(self.stored("memory:inuse_space:bytes:space:bytes"), {"make": 20})
        self.assertEqual(self.stored(ALLOCS), {"make": 200, "grow": 71})
        self.assertEqual(self.stored("memory:alloc_space:bytes:space:bytes"), {})
        self.run_task("allocs", self.heap((["main", "make"], [9, 230, 1, 10]), (["main", "grow"], [2, 80, 0, 0])))
        self.assertEqual(self.stored(ALLOCS), {"make": 230, "grow": 80})
        self.assertEqual(self.stored("allocs:alloc_objects:count:space:bytes"), {"make": 9, "grow": 2})

        # The file of a heap task has all four types, and says how far those that grow reach back.
        self.assertEqual(self.analyze(heap), ({"make": 20}, ""))
        self.assertEqual(self.analyze(heap, sampleType="alloc_space"),
                         ({"make": 57}, "alloc_space of 1 upload counts since the process started"))

    def test_a_process_that_restarted_or_another_instance_counts_from_its_own_start(self):
        self.run_task("mutex", self.contended((["main", "lock"], [1, 10])))
        self.run_task("mutex", self.contended((["main", "lock"], [1, 30])), self.start("pod-2"))
        self.assertEqual(self.stored(DELAY % "mutex"), {"lock": 40})

        # It restarts under its name, and has waited longer than in its first life.
        self.instance = self.start("pod-1")
        restarted = self.run_task("mutex", self.contended((["main", "lock"], [1, 50])))
        self.assertEqual(self.stored(DELAY % "mutex"), {"lock": 90})
        self.assertEqual(self.analyze(restarted), ({"lock": 50}, "delay of 1 upload counts since the process started"))
        self.run_task("mutex", self.contended((["main", "lock"], [1, 55])))
        self.assertEqual(self.stored(DELAY % "mutex"), {"lock": 95})

    def test_an_imported_task_shows_its_files_as_they_were_received(self):
        self.run_task("block", self.contended((["main", "send"], [2, 20])))
        second = self.run_task("block", self.contended((["main", "send"], [3, 50])))
        archive = self.server.connect(agent.TASKS + "ExportTask", {"taskId": second})["archive"]
        imported = self.server.connect(agent.TASKS + "ImportTask", {"archive": archive})["taskId"]
        self.assertEqual(self.analyze(second)[0], {"send": 30})
        self.assertEqual(self.analyze(imported), ({"send": 50}, "delay of 1 upload counts since the process started"))

    def test_files_of_go_are_added_up_to_the_last_of_them(self):
        for event, name, kind in (("block", "go-block-%s.pprof", DELAY % "block"), ("allocs", "go-heap-delta-%s-uncompressed.pprof", ALLOCS)):
            paths = [server.SHARED / "pprof" / (name % when) for when in ("before", "after")]
            if not all(path.is_file() for path in paths):
                self.skipTest("no shared data at %s" % server.SHARED)
            contents = [path.read_bytes() + wire.encode([(9, server.now_ms() * 1_000_000)]) for path in paths]
            for content in contents:
                self.run_task(event, content)
            last = {}
            for lines, value in Decoded(contents[1]).by_stack(1).items():
                if value:
                    last[lines[0][0]] = last.get(lines[0][0], 0) + value
            self.assertEqual(self.stored(kind), last)


if __name__ == "__main__":
    unittest.main()
