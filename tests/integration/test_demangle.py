"""Names of C++ and Rust: readable in every format, as --demangle says; the mangled name is the system name."""

import unittest

from server import Server, now_ms

T = now_ms() - 300_000
START, END = T - 3_600_000, T + 3_600_000
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

MANGLED = b"main;_ZN3foo3barEi;_ZN4core3ptr13drop_in_place17h0123456789abcdefE 3\nmain;_Zbad 1\n"
READABLE = {
    "simple": {"main", "foo::bar", "core::ptr::drop_in_place", "_Zbad"},
    "full": {"main", "foo::bar(int)", "core::ptr::drop_in_place", "_Zbad"},
    "none": {"main", "_ZN3foo3barEi", "_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "_Zbad"},
}


class Demangle(unittest.TestCase):
    def names(self, *arguments):
        server = Server(*arguments)
        try:
            path = "/ingest?name=svc.cpu&from=%d&until=%d&format=collapsed" % (T // 1000, T // 1000 + 10)
            status, _, answer = server.http("POST", path, MANGLED)
            self.assertEqual(status, 200, answer)
            return set(server.flamegraph(CPU, '{service_name="svc"}', START, END).names) - {"total"}
        finally:
            server.stop()

    def test_names_are_readable_without_parameters_unless_the_option_keeps_them(self):
        self.assertEqual(self.names(), READABLE["simple"])
        for how, names in READABLE.items():
            with self.subTest(how=how):
                self.assertEqual(self.names("--demangle", how), names)


if __name__ == "__main__":
    unittest.main()
