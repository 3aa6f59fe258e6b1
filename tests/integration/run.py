#!/usr/bin/python3
"""Run test files, each in its own process, one after the other.

run.py             all of tests/integration/test_*.py and tests/security/test_*.py
run.py NAME...     these: test_main_job, main_job or main_job.py
run.py conformance test_shared_data and test_main_job

A line per file, then exactly one line "N passed, N failed, N skipped"; exit code 1 when anything failed or nothing ran.
HEARTHD names the server's binary, HEARTH_TEST_SECONDS the time that each file gets (1140: CTest gives 1200).
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = [HERE, HERE.parent / "security"]
GROUPS = {"conformance": ["test_shared_data", "test_main_job"]}
SUMMARY = re.compile(r"^Ran (\d+) tests? in ", re.M)
VERDICT = re.compile(r"^(?:OK|FAILED)(?: \((.*)\))?$", re.M)


def names(arguments):
    """Test module names in the order asked for."""
    out = []
    for argument in arguments or sorted(path.stem for folder in FOLDERS for path in folder.glob("test_*.py")):
        for name in GROUPS.get(argument, [argument]):
            stem = pathlib.PurePath(name).name.removesuffix(".py")
            stem = stem if stem.startswith("test_") else "test_" + stem
            if not any((folder / (stem + ".py")).is_file() for folder in FOLDERS):
                sys.exit("run.py: there is no %s.py in tests/integration or tests/security" % stem)
            if stem not in out:
                out.append(stem)
    return out


def run(name, seconds):
    """(output, return code or None when it took too long)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "unittest", "-v", name],
        cwd=HERE, env={**os.environ, "PYTHONPATH": str(FOLDERS[1])}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    )
    try:
        return process.communicate(timeout=seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # its servers end with it
        try:
            output = process.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0]
        return output, None


def counts(output, code):
    """(passed, failed, skipped) as unittest reports them; an ending without a report is one failure more."""
    ran, verdict = SUMMARY.findall(output), VERDICT.findall(output)
    if not ran or not verdict:
        return output.count("... ok\n"), 1, 0
    said = {key: int(n) for key, n in re.findall(r"([a-z ]+)=(\d+)", verdict[-1])}
    said = {key.strip(): n for key, n in said.items()}
    skipped = said.get("skipped", 0)
    failed = said.get("failures", 0) + said.get("errors", 0) + said.get("unexpected successes", 0)
    passed = max(int(ran[-1]) - failed - skipped, 0)
    return passed, max(failed, 0 if code == 0 else 1), skipped


def main():
    seconds = float(os.environ.get("HEARTH_TEST_SECONDS", "1140"))
    totals = [0, 0, 0]
    for name in names(sys.argv[1:]):
        start = time.monotonic()
        output, code = run(name, seconds)
        passed, failed, skipped = counts(output, code)
        if code is None:
            print(output + "%s: no end within %g s" % (name, seconds))
        elif failed:
            print(output)
        else:
            for line in output.splitlines():
                note = line.find("note: ")
                if "... skipped" in line or note >= 0:
                    print(line if note < 0 else line[note:])
        took = time.monotonic() - start
        print("%-26s %3d passed %3d failed %3d skipped %7.1f s" % (name, passed, failed, skipped, took), flush=True)
        totals = [a + b for a, b in zip(totals, (passed, failed, skipped))]
    print("%d passed, %d failed, %d skipped" % tuple(totals))
    sys.exit(0 if totals[1] == 0 and sum(totals) > 0 else 1)


if __name__ == "__main__":
    main()
