"""The Debian packages in a clean Debian 12 tree: installed, used, upgraded, removed, purged; lintian; the same bytes twice.

Needs root, mmdebstrap, lintian and Debian's archive, so `./dev test --packages` runs it and nothing else does.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-package"
PACKAGES = BUILD / "packages"
NEWER = "9.0"
STACKS = "main;serve;parse 30\nmain;serve;write 10\n"
WATCHING = "/usr/share/doc/hearth/docs/observability"


def run(*command, **options):
    """Standard output of a command that must succeed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=3600, **options)
    assert done.returncode == 0, "%s: %s\n%s%s" % (command, done.returncode, done.stdout[-4000:], done.stderr[-4000:])
    return done.stdout


def newer_packages(directory):
    """The same programs as packages of a later version."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    version = re.search(r"^HEARTH_PACKAGE_VERSION:STRING=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M).group(1)
    try:
        run("cmake", "-DHEARTH_PACKAGE_VERSION=" + NEWER, BUILD)
        run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", directory, env=environment)
    finally:
        run("cmake", "-DHEARTH_PACKAGE_VERSION=" + version, BUILD)
    return sorted(pathlib.Path(directory).glob("*.deb"))


class Tree:
    """A minimal Debian 12 below a directory; the first one is kept as an archive for later runs."""

    def __init__(self, stack):
        self.path = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=os.environ.get("HEARTH_TEST_ROOT"))))
        self.path.chmod(0o755)
        archive = BUILD / "debian-12.tar"
        if not archive.exists():
            part = archive.with_suffix(".part")
            run("mmdebstrap", "--variant=apt", "--format=tar", "--include=systemd-standalone-sysusers", "bookworm", part)
            part.rename(archive)
        run("tar", "-xpf", archive, "-C", self.path, "--exclude=./dev/*", "--exclude=./proc/*")
        shutil.copy("/etc/resolv.conf", self.path / "etc/resolv.conf")
        self.downloads = BUILD / "downloads"  # of apt, for later runs
        self.downloads.mkdir(exist_ok=True)

    def command(self, command, alone=False):
        """`command` of the shell within the tree, in namespaces of its own; `alone`: with no network but loopback."""
        inside = "mount --rbind /dev {0}/dev; mount -t proc proc {0}/proc; mount -t tmpfs run {0}/run; "
        inside += "mount --bind {1} {0}/var/cache/apt/archives; "
        inside += "ip link set lo up; " if alone else ""
        inside += "exec chroot {0} env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 sh -ec \"$0\""
        spaces = ["--mount", "--pid", "--fork", "--kill-child", "--ipc"] + (["--net"] if alone else [])
        return ["unshare", *spaces, "sh", "-ec", inside.format(self.path, self.downloads), command]

    def sh(self, command):
        return run(*self.command(command))

    @contextlib.contextmanager
    def hearthd(self):
        """The installed server as its unit starts it; gives a function that runs a command of the shell beside it."""
        start = self.command(
            "set -a; . /etc/default/hearthd; HEARTH_DATA_DIR=/var/lib/hearth; umask 077; "
            "install -d -m 700 -o hearth -g hearth /var/lib/hearth; "
            "exec setpriv --reuid hearth --regid hearth --init-groups --no-new-privs hearthd", alone=True)
        with tempfile.TemporaryFile("w+") as log:
            server = subprocess.Popen(start, stdout=log, stderr=log)
            first = None
            try:
                first = self._first_process(server)
                enter = ("nsenter", "-a", "-t", first, "chroot", self.path, "sh", "-ec")
                yield lambda command: run(*enter, command)
            except AssertionError as error:
                log.seek(0)
                raise AssertionError("%s\n%s" % (error, log.read()[-4000:])) from None
            finally:
                if first is None:
                    server.kill()  # and with it what it started
                elif server.poll() is None:
                    os.kill(first, signal.SIGTERM)
                server.wait(120)
            assert server.returncode == 0, "hearthd ended with %s" % server.returncode

    @staticmethod
    def _first_process(unshare):
        """The only child of unshare: the first process of the namespaces, hearthd."""
        children = pathlib.Path("/proc/%d/task/%d/children" % (unshare.pid, unshare.pid))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and unshare.poll() is None:
            found = children.read_text().split()
            if found and pathlib.Path("/proc/%s/comm" % found[0]).read_text() == "hearthd\n":
                return int(found[0])
            time.sleep(0.05)
        raise AssertionError("hearthd was not started")


class Packages(unittest.TestCase):
    def packages(self):
        return sorted(PACKAGES.glob("*.deb"))

    def test_lintian_has_nothing_to_report(self):
        self.assertEqual(run("lintian", "--allow-root", "--tag-display-limit", "0", *self.packages()), "")

    def test_another_directory_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory(prefix="a-longer-name-of-a-directory-") as directory:
            run("sh", "-ec", "git ls-files -z | tar --null -cT - | tar -xC \"$0\"", directory, cwd=ROOT)
            epoch = run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
            again = run("./dev", "package", cwd=directory, env={**os.environ, "SOURCE_DATE_EPOCH": epoch})
        first = run("sha256sum", *[package.name for package in self.packages()], cwd=PACKAGES)
        self.assertEqual(re.findall(r"^[0-9a-f]{64}  \S+\.deb$", again, re.M), first.splitlines())

    def test_installed_packages_run_and_are_removed_in_a_clean_tree(self):
        with contextlib.ExitStack() as stack:
            tree = Tree(stack)
            debs = tree.path / "debs"
            for package in self.packages():
                (debs / "old").mkdir(parents=True, exist_ok=True)
                shutil.copy(package, debs / "old")
            for package in newer_packages(stack.enter_context(tempfile.TemporaryDirectory())):
                (debs / "new").mkdir(exist_ok=True)
                shutil.copy(package, debs / "new")
            (tree.path / "tmp/stacks.txt").write_text(STACKS)

            self.install(tree)
            before = self.push_and_ask(tree)
            self.upgrade(tree, before)
            self.remove(tree)

    def install(self, tree):
        # PostgreSQL's own cluster is not needed; its package makes none in this tree.
        (tree.path / "etc/postgresql-common").mkdir()
        (tree.path / "etc/postgresql-common/createcluster.conf").write_text("create_main_cluster = false\n")
        # Without libhearth-dev, which needs the development files of gRPC.
        tree.sh("rm /debs/*/libhearth-dev*; apt-get -q update; apt-get -qy install /debs/old/*.deb")
        self.assertIn("hearth", (tree.path / "etc/passwd").read_text())
        for name in ("etc/systemd/system/multi-user.target.wants/hearthd.service", "etc/hearth/hearthd.yaml"):
            self.assertTrue(os.path.lexists(tree.path / name), name)
        self.assertEqual(tree.sh("hearthd check-config --config /etc/hearth/hearthd.yaml"), "the configuration is valid\n")
        self.assertIn("upload", tree.sh("hearth completion words -- uplo"))

    def ask(self, command):
        """The functions of the stored profile, with their values."""
        return json.loads(command("hearth query top '{service_name=\"packaged\"}' --since 1h -o json"))["rows"]

    def push_and_ask(self, tree):
        with (tree.path / "etc/hearth/hearthd.yaml").open("a") as conf:
            conf.write("process:\n  log-level: debug\n")
        with tree.hearthd() as command:
            command("hearth ready --wait 120s")
            command("hearth upload /tmp/stacks.txt --label service_name=packaged")
            answer = self.ask(command)
            self.watch(tree, command)
        self.assertIn({"name": "parse", "self": "30", "total": "30"}, answer)
        return answer

    def watch(self, tree, command):
        """Debian's Prometheus, with the files of the package as they are, scrapes the server; no alert fires."""
        tree.sh("apt-get -qy install prometheus; cd {0}; promtool test rules alerts-test.yaml; "
                "install -d /etc/hearth-watch; cp alerts.yaml provisioning/prometheus.yaml /etc/hearth-watch; "
                "promtool check config /etc/hearth-watch/prometheus.yaml".format(WATCHING))
        command("hearth ready; curl -s --fail http://127.0.0.1:4040/metrics | promtool check metrics")
        command("prometheus --config.file /etc/hearth-watch/prometheus.yaml --storage.tsdb.path /tmp/prometheus "
                "--web.listen-address 127.0.0.1:9090 > /tmp/prometheus.log 2>&1 &")

        def number(query):
            found = command("promtool query instant http://127.0.0.1:9090 '%s' 2>&1 || true" % query)
            return re.findall(r"=> (\S+) @", found)

        deadline = time.monotonic() + 120  # of the start of Prometheus and three scrapes, 15 s apart
        while time.monotonic() < deadline and "3" not in number("min(count_over_time(up[5m]))"):
            time.sleep(1)
        log = (tree.path / "tmp/prometheus.log").read_text()
        self.assertEqual(number("sum(up)"), ["2"], log)
        self.assertEqual(number("sum(hearth_profiles_stored_total)"), ["1"], log)
        self.assertEqual(number("ALERTS{alertstate=\"firing\"}"), [], log)

    def upgrade(self, tree, before):
        tree.sh("apt-get -qy install /debs/new/*.deb")
        self.assertEqual(tree.sh("dpkg-query -Wf '${Version}' hearthd"), NEWER)
        self.assertIn("log-level: debug\n", (tree.path / "etc/hearth/hearthd.yaml").read_text())
        with tree.hearthd() as command:
            command("hearth ready --wait 120s")
            self.assertEqual(self.ask(command), before)

    def remove(self, tree):
        data = tree.path / "var/lib/hearth/postgres/PG_VERSION"
        conf = tree.path / "etc/hearth/hearthd.yaml"
        tree.sh("apt-get -qy remove hearthd hearth-cli")
        self.assertFalse((tree.path / "usr/bin/hearthd").exists())
        self.assertTrue(conf.exists())
        told = tree.sh("apt-get -qy purge hearthd 2>&1")
        self.assertIn("rm -r /var/lib/hearth", told)
        self.assertFalse(conf.exists())
        self.assertTrue(data.exists(), "purge deleted the profiles")


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("the packages were not tested: that needs root")
    for tool in ("mmdebstrap", "lintian", "unshare", "nsenter", "ip"):
        if shutil.which(tool) is None:
            raise SystemExit("the packages were not tested: %s is not installed" % tool)
    unittest.main(verbosity=2)
