"""A program in a pseudo-terminal of a given size, and what a person would see on its screen."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

SEQUENCE = re.compile(r"\x1b(?:\[([0-?]*)[ -/]*([@-~])|\]([^\x07\x1b]*)(?:\x07|\x1b\\)|[@-Z\\^_])")


class Screen:
    """Cells [row][column] of (text, style), for the sequences that hearth writes. Others fail."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.row = self.column = 0
        self.style = ""
        self.modes = set()
        self.clipboard = []
        self.styles = set()
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.rest = ""
        self.main = ""  # written outside of the alternate screen
        self.clear()

    def clear(self):
        self.cells = [[(" ", "")] * self.columns for _ in range(self.rows)]

    def feed(self, data):
        text = self.rest + self.decoder.decode(data)
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = SEQUENCE.match(text, at)
                if match is None:
                    if len(text) - at > 10000:
                        raise AssertionError(f"an unknown sequence: {text[at:at + 20]!r}")
                    break
                self.obey(match)
                at = match.end()
            else:
                self.put(text[at])
                at += 1
        self.rest = text[at:]

    def obey(self, match):
        parameters, final, command = match.groups()
        if command is not None:
            self.clipboard.append(command)
        elif final == "H":
            row, column = (parameters.split(";") + ["1"])[:2] if parameters else ("1", "1")
            self.row, self.column = int(row) - 1, int(column) - 1
        elif final == "m":
            self.style = "" if parameters in ("", "0") else self.style + ";" + parameters
            self.styles.add(parameters)
        elif final == "J":
            self.clear()
        elif final in "hl" and parameters.startswith("?"):
            (self.modes.add if final == "h" else self.modes.discard)(parameters)
        else:
            raise AssertionError(f"an unknown sequence: {match.group()!r}")

    def put(self, char):
        if "?1049" not in self.modes:
            self.main += char
            return
        width = 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if unicodedata.category(char) == "Cc" or unicodedata.combining(char):
            raise AssertionError(f"a raw control character: {char!r}")
        if self.row >= self.rows or self.column + width > self.columns:
            raise AssertionError(f"{char!r} is outside of the screen, at {self.row}:{self.column}")
        self.cells[self.row][self.column] = (char, self.style)
        if width == 2:
            self.cells[self.row][self.column + 1] = ("", self.style)
        self.column += width

    def line(self, row):
        return "".join(text for text, _ in self.cells[row])

    def text(self):
        """What a person reads: runs of spaces are one."""
        return "\n".join(re.sub(" +", " ", self.line(row)) for row in range(self.rows))

    def styled(self, style):
        """The text of the cells whose style has this word, row by row."""
        return "\n".join(
            line for line in ("".join(text for text, has in row if style in has) for row in self.cells) if line
        )


class Terminal:
    def __init__(self, command, env, columns=100, rows=30):
        self.screen = Screen(columns, rows)
        self.ours, theirs = pty.openpty()
        self.resize_only(columns, rows)
        self.modes_before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=env
        )
        self.theirs = theirs  # kept, to look at its modes after the end

    def resize_only(self, columns, rows):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        while self.read(0.5):
            pass  # what was drawn for the former size may still be on its way
        self.screen = self.renewed(columns, rows)
        self.resize_only(columns, rows)

    def renewed(self, columns, rows):
        screen = Screen(columns, rows)
        screen.modes, screen.clipboard = self.screen.modes, self.screen.clipboard
        return screen

    def read(self, seconds):
        ready, _, _ = select.select([self.ours], [], [], seconds)
        if ready:
            self.screen.feed(os.read(self.ours, 1 << 16))
        return bool(ready)

    def see(self, *texts, missing=(), seconds=30):
        """Waits until the screen has the texts and none of `missing`; returns its text."""
        end = time.monotonic() + seconds
        while True:
            shown = self.screen.text()
            if all(text in shown for text in texts) and not any(text in shown for text in missing):
                return shown
            if time.monotonic() > end or (self.process.poll() is not None and not self.read(0.2)):
                said = self.process.stderr.read().decode() if self.process.poll() is not None else ""
                raise AssertionError(f"{texts} without {missing} are not on the screen:\n{shown}\n{said}")
            self.read(0.2)

    def press(self, keys):
        os.write(self.ours, keys.encode())

    def press_until_new(self, keys, row, seconds=30):
        """Presses the keys and waits until the row shows something else, which is returned."""
        before = self.screen.line(row)
        self.press(keys)
        end = time.monotonic() + seconds
        while self.screen.line(row) == before:
            if time.monotonic() > end:
                raise AssertionError(f"row {row} is still {before!r}")
            self.read(0.2)
        while self.read(0.05):
            pass
        return self.screen.line(row)

    def end(self, keys="q"):
        """Presses the keys and waits for the end. Returns (exit code, what is printed after the screen, stderr)."""
        if keys:
            self.press(keys)
        end = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        if self.process.poll() is None:
            self.process.kill()
        while self.read(0.1):
            pass
        err = self.process.stderr.read().decode()
        self.process.stderr.close()
        return self.process.wait(), self.screen.main, err

    def modes(self):
        return termios.tcgetattr(self.theirs)

    def kill(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        os.close(self.ours)
        os.close(self.theirs)
