"""What the programs of a script did not do, with its place in the script.

A script discards what its commands print. So a program that does not do what it was asked for writes a
remark to a file of the network and signals the script, which says the remark with its line::

    ovs-vsctl … ──▶ DIRECTORY/remarks ──SIGUSR2──▶ the script: a warning, or its end with exit code 1
"""

from __future__ import annotations

import difflib
import json
import os
import signal
import sys
import sysconfig
from pathlib import Path
from types import FrameType
from typing import Iterable, Optional

# Ends the script.
UNSUPPORTED = "unsupported"
# Said as a warning: what Open vSwitch would refuse as well, or what has no effect.
WARNING = "warning"

_HERE = str(Path(__file__).absolute().parent)
_STDLIB = sysconfig.get_path("stdlib")
_FILE, _OWNER = "remarks", "owner"


class Stopped(SystemExit):
    """Ends a script: one of its commands was not carried out."""


def write(directory: str, kind: str, text: str) -> None:
    """Write a remark, and let the script know."""
    line = json.dumps({"kind": kind, "text": text}) + "\n"
    with open(os.path.join(directory, _FILE), "a") as file:
        file.write(line)
    pid, started = owner(directory)
    if pid is not None and _started(pid) == started:
        os.kill(pid, signal.SIGUSR2)


def owner(directory: str) -> tuple[Optional[int], Optional[str]]:
    """Return the process of the script that receives signals, and when it started."""
    try:
        with open(os.path.join(directory, _OWNER)) as file:
            pid, started = file.read().split()
    except FileNotFoundError:
        return None, None
    return int(pid), started


def _started(pid: int) -> Optional[str]:
    """Return the time at which a process started (proc(5)); a process id may be used again."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        return None


class Remarks:
    """The remarks of the programs of this script."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, _FILE)
        self._read = 0
        self.stopped: Optional[Stopped] = None
        self._said: set[str] = set()
        try:
            if signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
                signal.signal(signal.SIGUSR2, self._signalled)
                with open(os.path.join(directory, _OWNER), "w") as file:
                    file.write(f"{os.getpid()} {_started(os.getpid())}")
        except ValueError:
            # Not in the main thread: remarks are looked for after each command.
            return

    def _signalled(self, _number: int, frame: Optional[FrameType]) -> None:
        self.check(frame)

    def check(self, frame: Optional[FrameType] = None) -> None:
        """Say new remarks; raise if a command was not carried out."""
        try:
            with open(self._path) as file:
                file.seek(self._read)
                lines = file.readlines()
                self._read = file.tell()
        except FileNotFoundError:
            return
        where = place(frame or sys._getframe(1))
        for line in lines:
            remark = json.loads(line)
            if remark["kind"] == UNSUPPORTED:
                self.stopped = Stopped(f"{where}: {remark['text']}")
            else:
                self._say(f"{where}: warning: {remark['text']}")
        if lines and self.stopped:
            raise self.stopped


    def warn(self, text: str) -> None:
        """Warn of what has no effect, with the line of the script."""
        line = f"{place(sys._getframe(1))}: warning: {text}"
        # Both ends of a link have its parameters.
        if line not in self._said:
            self._said.add(line)
            self._say(line)

    def unknown(self, what: str, given: Iterable[str], known: Iterable[str]) -> None:
        """Warn of parameters that nothing takes."""
        for name in given:
            near = difflib.get_close_matches(name, list(known), 1)
            self.warn(f"{what}: {name} has no effect" + (f"; write {near[0]}" if near else ""))

    @staticmethod
    def _say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def place(frame: Optional[FrameType]) -> str:
    """Return the line of the script that led to a frame."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_HERE, _STDLIB, "<")):
            return f"{os.path.basename(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return "script"
