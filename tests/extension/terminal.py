"""The stock shell on a terminal, with the extension loaded: types lines, presses Ctrl-C, reads what is shown."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import time
from pathlib import Path

from tests.extension.shells import extension_file, stock_shell

_COMMANDS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A shell in which everything is registered."""

    def __init__(self) -> None:
        arguments = [str(stock_shell()), "-unsigned", "-csv", "-dark-mode"]  # it would ask the terminal for its color
        load = f"LOAD '{extension_file()}';"
        self.process, self._terminal = pty.fork()
        if self.process == 0:
            os.environ["TERM"] = "dumb"
            os.execv(arguments[0], arguments)
        self.shown = ""
        self.wait_for("D ")
        self.ask(load, "load")

    def ask(self, statement: str, sign: str) -> None:
        """Run a statement, and wait for a sign after it; the sign is not what is typed, which is shown as well."""
        self.type(statement)
        self.type(f"SELECT '{sign}' || '-done' AS sign;")
        self.wait_for(f"{sign}-done")

    def type(self, line: str) -> None:
        self.shown = ""
        os.write(self._terminal, line.encode() + b"\n")

    def interrupt(self) -> None:
        os.write(self._terminal, b"\x03")

    def wait_for(self, sign: str, seconds: float = 60) -> float:
        """Read until a sign is shown; return how long that took."""
        begun = time.monotonic()
        while sign not in self.shown:
            assert time.monotonic() < begun + seconds, self.shown
            self.read(0.05)
        return time.monotonic() - begun

    def read(self, seconds: float) -> None:
        """Read what is shown in some seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                with contextlib.suppress(OSError):  # the shell is gone
                    self.shown += _COMMANDS.sub("", os.read(self._terminal, 65536).decode(errors="replace"))

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def let_work(self, seconds: float) -> None:
        """Wait until the shell has worked for some time."""
        begun, latest = self.processor_seconds(), time.monotonic() + 60
        while self.processor_seconds() < begun + seconds and time.monotonic() < latest:
            self.read(0.02)

    def quit(self, seconds: float = 30) -> int:
        """End the shell and return its exit code."""
        self.type(".quit")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                os.close(self._terminal)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.process, 9)
        os.waitpid(self.process, 0)
        raise AssertionError("the shell hangs")
