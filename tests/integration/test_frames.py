"""What is stored of a frame, and what it is called: code without symbols, functions without a name."""

import gzip
import json
import os
import pty
import re
import subprocess
import unittest
import urllib.parse

import wire
from pprof import Decoded, Profile
from questions import CPU, DOT
from server import HEARTH, Server, now_ms, server_environment, temporary_directory
from test_cli import OK, hearth

QUERY = "hearth.v1.QueryService/"
SECOND = 1000
T = now_ms() // SECOND * SECOND - 60 * SECOND
START, END = T - 60 * SECOND, T + 60 * SECOND
BINARY, BUILD_ID = "/usr/bin/stripped", "b01d"


def stripped(start, stacks, flags=(7,)):
    """A profile of a stripped binary that is mapped at `start`: its mapping says has_functions (field 7), its locations have
    addresses alone. stacks: [(leaf-first addresses, value)]; a text among them is a frame with a name."""
    strings = ["", "cpu", "nanoseconds", BINARY, BUILD_ID]
    mapping = [(1, 1), (2, start), (3, start + 0x10000), (4, 0x2000), (5, 3), (6, 4)] + [(flag, 1) for flag in flags]
    out = [(1, [(1, 1), (2, 2)]), (11, [(1, 1), (2, 2)]), (9, T * 1_000_000), (3, mapping)]
    ids = {}
    for frames, value in stacks:
        for frame in frames:
            if frame in ids:
                continue
            ids[frame] = number = len(ids) + 1
            if isinstance(frame, str):
                strings.append(frame)
                out.append((5, [(1, number), (2, len(strings) - 1), (3, len(strings) - 1)]))
                out.append((4, [(1, number), (2, 1), (3, start + number), (4, [(1, number), (2, 7)])]))
            else:
                out.append((4, [(1, number), (2, 1), (3, frame)]))
        out.append((2, [(1, ("packed", [ids[frame] for frame in frames])), (2, ("packed", [value]))]))
    return gzip.compress(wire.encode(out + [(6, text) for text in strings]), 1)


def addresses(data):
    """{address: {(start, limit, offset, file, build id, flags)}} of locations without lines."""
    f = wire.decode(data)
    strings = wire.texts(f[6])
    mappings = {}
    for raw in f.get(3, []):
        v = {number: values[-1] for number, values in wire.decode(raw).items()}
        text = [strings[v.get(number, 0)] for number in (5, 6)]
        mappings[v[1]] = (v.get(2, 0), v.get(3, 0), v.get(4, 0), *text, *(number in v for number in range(7, 11)))
    out = {}
    for raw in f.get(4, []):
        v = wire.decode(raw)
        if 4 not in v:
            out.setdefault(v[3][-1], set()).add(mappings[v[2][-1]])
    return out


class Frames(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def push(self, service, *profiles):
        for profile in profiles:
            self.server.push(profile, {"__name__": "process_cpu", "service_name": service})
        return '{service_name="%s"}' % service

    def merged(self, selector):
        return self.server.merge_pprof(CPU, selector, START, END)

    # ---- code without symbols ----

    def test_an_export_of_a_stripped_binary_can_still_be_symbolised(self):
        selector = self.push("stripped", stripped(0x400000, [((0x401000, 0x402000), 5), (("known", 0x402000), 2)]))
        mapped = {(0x400000, 0x410000, 0x2000, BINARY, BUILD_ID, True, False, False, False)}
        want = {0x401000: mapped, 0x402000: mapped}
        self.assertEqual(addresses(self.merged(selector)), want)

        # And as a file, by the client.
        file = temporary_directory() + "/out.pb.gz"
        url = "http://127.0.0.1:%d" % self.server.port
        done = hearth("query", "profile", selector, "--type", CPU, "-o", "pprof=" + file, env={"HEARTH_URL": url})
        self.assertEqual(done.code, OK, done.err)
        with open(file, "rb") as exported:
            self.assertEqual(addresses(gzip.decompress(exported.read())), want)

    def test_an_address_of_two_processes_stays_two_locations(self):
        stack = [((0x401000,), 5)]
        selector = self.push("two", stripped(0x400000, stack), stripped(0x3ff000, stack), stripped(0x400000, stack))
        data = self.merged(selector)
        self.assertEqual({m[0] for m in addresses(data)[0x401000]}, {0x400000, 0x3FF000})
        self.assertEqual(sorted(values for _, values, _ in Decoded(data).samples), [[5], [10]])

    def test_functions_of_two_processes_are_one_wherever_they_are_mapped(self):
        stack = [(("known", "main"), 5)]
        for flags in ((), (7,), (7, 8, 9)):
            profiles = [stripped(start, stack, flags) for start in (0x400000, 0x7F0000000000)]
            selector = self.push("aslr%d" % len(flags), *profiles)
            self.assertEqual([values for _, values, _ in Decoded(self.merged(selector)).samples], [[10]])


if __name__ == "__main__":
    unittest.main()
