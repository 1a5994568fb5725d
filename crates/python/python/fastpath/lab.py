"""Labs: hosts as network namespaces of this machine, with real programs in them (Linux).

Namespaces and threads are in the process of the program ``fastpath``, which this module starts,
asks over the control socket, and ends. When the interpreter is killed, the lab ends too.
"""

from __future__ import annotations

import html
import http.client
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union
from urllib.parse import quote

from ._arguments import seed_of
from ._description import Placed
from ._progress import Display
from ._record import Record
from .errors import Error, LabError, Mistake, Mistakes
from .program import program

if TYPE_CHECKING:
    from .topology import Topology

__all__ = ["Lab", "LabHost", "LabLink"]

_NUMBERS = itertools.count(1)
_CLOSE_WAIT_S = 30.0
# Kinds of nodes, in the canonical form, in which programs run.
_WITH_PROGRAMS = ("host", "kernel")
# Starts a program that ends when standard input ends: when the interpreter closes it, or is killed.
_KEEPER = """
exec 3<&0 </dev/null
"$@" 3<&- & engine=$!
{ read -r line; kill -TERM $engine; } <&3 2>/dev/null >&2 & reader=$!
exec 3<&-
wait $engine; code=$?
kill $reader 2>/dev/null
exit $code
"""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class LabHost:
    """A host of a lab that is up."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab = lab
        self.name = name

    def arguments(self, command: Union[str, Sequence[str]]) -> list[str]:
        """Return the command line that runs a command on this host; text is for ``sh -c``."""
        words = ["sh", "-c", command] if isinstance(command, str) else [str(word) for word in command]
        return [program(), "lab", "exec", self.lab.name, self.name, "--", *words]

    def popen(self, command: Union[str, Sequence[str]], **options: Any) -> subprocess.Popen[Any]:
        """Start a program on this host. Options are those of :class:`subprocess.Popen`."""
        self.lab._alive()
        return subprocess.Popen(self.arguments(command), **options)

    def run(
        self, command: Union[str, Sequence[str]], **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Run a program on this host to its end. Options are those of :func:`subprocess.run`."""
        self.lab._alive()
        done = subprocess.run(self.arguments(command), **options)
        if done.returncode < 0 or done.returncode > 128:
            self.lab._ended(1.0)
        return done

    def cmd(self, command: Union[str, Sequence[str]]) -> str:
        """Run a command on this host and return what it prints, errors included."""
        done = self.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return bytes(done.stdout).decode(errors="replace")

    def __repr__(self) -> str:
        return f"<host {self.name} of lab {self.lab.name}>"


class LabLink:
    """A link of a lab that is up."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab = lab
        self.name = name

    def set(self, *, from_: Optional[str] = None, at: Optional[str] = None, **values: Any) -> float:
        """Set values of the link, all at one instant.

        Parameters
        ----------
        from_
            The node where the direction begins; without it both directions change.
        at
            The time since the start, such as ``"10s"``; without it the change happens now.
        **values
            Keys of a link in a spec: ``delay="50ms"``, ``rate="5Mbit"``, ``state="down"``.

        Returns
        -------
        The time of the change, seconds since the start.
        """
        odd = Placed(values).odd
        if odd:
            raise Mistakes([Mistake(f"link {self.name}: {'.'.join(map(str, path))}", what, instead)
                            for path, what, instead in odd])
        change: dict[str, Any] = {"link": self.name, "set": values}
        if from_ is not None:
            change["from"] = str(from_)
        request: dict[str, Any] = {"changes": [change]}
        if at is not None:
            request["at"] = at
        answer = self.lab.request("POST", "/set", request)
        self.lab._changes.append((self.name, from_, values))
        return float(answer["at_s"])

    @property
    def state(self) -> Record:
        """The parameters and counters of the link now: ``state.directions[0].frames_in``."""
        found: Record = self.lab.request("GET", f"/links/{quote(self.name, safe='')}")
        return found

    def __repr__(self) -> str:
        return f"<link {self.name} of lab {self.lab.name}>"


class Lab:
    """A topology as real hosts: ``with net.lab() as lab: lab["a"].cmd("ping -c 3 b")``.

    Parameters
    ----------
    topology
        The network.
    name
        The name of the lab, for ``fastpath lab list``. Without it a new one is chosen.
    seed
        The seed of every random choice.
    options
        Further arguments of ``fastpath lab up``: ``options=["--busy"]``.
    """

    def __init__(
        self,
        topology: Topology,
        name: Optional[str] = None,
        *,
        seed: Optional[int] = None,
        options: Sequence[str] = (),
    ) -> None:
        self.topology = topology
        self.name = name or f"py-{os.getpid()}-{next(_NUMBERS)}"
        self._arguments = [*(["--seed", str(seed_of(seed))] if seed is not None else []), *options]
        self._engine: Optional[subprocess.Popen[bytes]] = None
        self._owner = os.getpid()
        self._directory: Optional[str] = None
        self._errors: list[str] = []
        self._changes: list[tuple[str, Optional[str], Mapping[str, Any]]] = []
        self.hosts: dict[str, LabHost] = {}
        self.engine_pid = 0

    def up(self) -> Lab:
        """Bring the lab up."""
        if self._engine is not None:
            raise LabError(f"lab {self.name} is up already")
        self._owner = os.getpid()
        self._directory = tempfile.mkdtemp(prefix="fastpath-")
        path = self.topology.write(self._directory)
        command = [program(), "lab", "up", str(path), "--name", self.name, *self._arguments]
        self._engine = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "fastpath", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.topology._directory,
            # Ctrl-C is for the interpreter, which ends the lab in its own time.
            start_new_session=True,
        )
        collector = threading.Thread(target=self._collect, args=(self._engine,), daemon=True)
        collector.start()
        try:
            assert self._engine.stdout is not None
            line = self._engine.stdout.readline().decode(errors="replace")
        except BaseException:
            self.close()
            raise
        found = re.search(r"is up \(process (\d+)\)", line)
        if not found:
            self._engine.wait()
            collector.join(_CLOSE_WAIT_S)
            why = self._why() or "the program fastpath ended"
            self.close()
            raise LabError(f"lab {self.name} cannot be brought up: {why}")
        self.engine_pid = int(found.group(1))
        threading.Thread(target=self._drain, args=(self._engine,), daemon=True).start()
        nodes = self.topology.description()["nodes"]
        names = [str(node["name"]) for node in nodes if node["kind"] in _WITH_PROGRAMS]
        self.hosts = {name: LabHost(self, name) for name in names}
        return self

    def close(self) -> None:
        """Remove the lab and end its programs. A process forked from the owner leaves it alone."""
        engine, self._engine = self._engine, None
        if engine is None or os.getpid() != self._owner:
            return
        if engine.stdin is not None:
            engine.stdin.close()
        try:
            engine.wait(_CLOSE_WAIT_S)
        except subprocess.TimeoutExpired:
            subprocess.run([program(), "lab", "down", self.name], capture_output=True, check=False)
            engine.kill()
            engine.wait()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Lab:
        return self if self._engine is not None else self.up()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, host: str) -> LabHost:
        try:
            return self.hosts[str(host)]
        except KeyError:
            have = ", ".join(self.hosts)
            raise LabError(f"lab {self.name} has no host {host} (have: {have})") from None

    def __iter__(self) -> Iterator[LabHost]:
        return iter(self.hosts.values())

    def link(self, name: str) -> LabLink:
        """Return a link by its name, such as ``"a-b"``."""
        have = [str(link["name"]) for link in self.links()]
        if str(name) not in have:
            raise LabError(f"lab {self.name} has no link {name} (have: {', '.join(have)})")
        return LabLink(self, str(name))

    def links(self) -> list[Record]:
        """Return all links with their parameters and counters."""
        found: list[Record] = self.request("GET", "/links")
        return found

    def directions(self) -> list[Record]:
        """Return a record for each direction of each link, for ``pandas.DataFrame``."""
        return [
            Record({"link": link.name, **direction}) for link in self.links() for direction in link.directions
        ]

    def report(self) -> Record:
        """Return links, ports, lateness and frame accounting."""
        found: Record = self.request("GET", "/report")
        return found

    def watch(self, seconds: Optional[float] = None, *, every: float = 0.5) -> None:
        """Show the links while the lab runs, on the terminal or in a notebook.

        Parameters
        ----------
        seconds
            How long; without it until Ctrl-C, or until the lab ends.
        every
            The time between two updates, seconds.
        """
        end = None if seconds is None else time.monotonic() + seconds
        shown = Display()
        before, before_at = self.directions(), time.monotonic()
        try:
            while end is None or time.monotonic() < end:
                time.sleep(every if end is None else max(0.0, min(every, end - time.monotonic())))
                now, now_at = self.directions(), time.monotonic()
                shown.show(_Table(_rows(before, now, now_at - before_at)))
                before, before_at = now, now_at
        except KeyboardInterrupt:
            return

    def audit(self) -> Record:
        """Measure RTT, rate, loss and TCP goodput of every pair of hosts, and compare with the spec.

        The measurement is in a second lab with the same values, those set by
        :meth:`LabLink.set` included: the traffic of this lab would disturb it.
        """
        from .topology import Topology

        # Every link has its name, and every value stands in its direction.
        description = self.topology.check().description
        links = {link["name"]: link for link in description["links"]}
        for name, from_, values in self._changes:
            for key, node in zip(("forward", "backward"), links[name]["between"]):
                if from_ in (None, node):
                    links[name].setdefault(key, {}).update(values)
        copy = Topology._from_canonical(description, self.topology._directory)
        copy._texts = self.topology._texts
        directory = tempfile.mkdtemp(prefix="fastpath-")
        try:
            path = copy.write(directory)
            command = [program(), "lab", "run", str(path), "--name", f"{self.name}-audit"]
            done = subprocess.run(
                [*command, "--audit", "--json", *self._arguments], capture_output=True, check=False
            )
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        try:
            found: Record = json.loads(done.stdout, object_hook=Record)
        except ValueError:
            raise LabError(f"the audit of {self.name} failed: {_text(done.stderr)}") from None
        return found

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the control interface. Returns its answer."""
        self._alive()
        connection = _UnixConnection(self._socket(), 30.0)
        text = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, text, {"content-type": "application/json"})
            answer = connection.getresponse()
            status, answered = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise LabError(f"lab {self.name} does not answer: {self._why() or error}") from error
        finally:
            connection.close()
        found = json.loads(answered, object_hook=Record) if answered else None
        if status != 200:
            why = found.get("error", found) if isinstance(found, dict) else found
            raise Error(f"lab {self.name}: {why}")
        return found

    def _socket(self) -> str:
        base = os.environ.get("FASTPATH_STATE_DIR")
        if base is None and os.geteuid() == 0:
            base = "/run/fastpath"
        elif base is None:
            state = os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~/.local/state")
            base = os.path.join(state, "fastpath")
        return os.path.join(base, self.name, "control.sock")

    def _alive(self) -> None:
        if self._engine is None:
            raise LabError(f"lab {self.name} is not up; write `with net.lab() as lab:`")
        if self._owner == os.getpid() and self._engine.poll() is not None:
            raise LabError(f"lab {self.name} has ended: {self._why() or 'its engine was killed'}")

    def _ended(self, wait_s: float) -> None:
        """Raise if the lab has ended, which ends its programs too."""
        engine = self._engine
        if engine is None or self._owner != os.getpid():
            return
        try:
            engine.wait(wait_s)
        except subprocess.TimeoutExpired:
            return
        self._alive()

    def _collect(self, engine: subprocess.Popen[bytes]) -> None:
        assert engine.stderr is not None
        for line in engine.stderr:
            self._errors = [*self._errors[-99:], _text(line)]

    def _drain(self, engine: subprocess.Popen[bytes]) -> None:
        assert engine.stdout is not None
        for _ in engine.stdout:
            pass

    def _why(self) -> str:
        return "\n".join(line.removeprefix("fastpath: ") for line in self._errors if line)

    def _repr_html_(self) -> str:
        directions = self.directions() if self._engine is not None else []
        return _Table(_rows(directions, directions, 1.0))._repr_html_()

    def __repr__(self) -> str:
        state = "up" if self._engine is not None else "down"
        return f"<lab {self.name}: {len(self.topology.nodes)} nodes, {state}>"


class _Table:
    """Rows with equal keys, as text and as HTML."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self._rows = rows

    def __str__(self) -> str:
        rows = [list(self._rows[0]), *(list(row.values()) for row in self._rows)] if self._rows else []
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{html.escape(key)}</th>" for key in (self._rows or [{}])[0])
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row.values()) for row in self._rows)
        return f"<table><tr>{heads}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _rows(before: Sequence[Record], now: Sequence[Record], seconds: float) -> list[dict[str, str]]:
    rows = []
    for then, direction in zip(before, now):
        passed = 8 * (direction.bytes_out - then.bytes_out) / max(seconds, 1e-9)
        dropped = sum(direction.get("dropped", {}).values())
        rows.append({
            "link": str(direction.link),
            "direction": f"{direction.from_} → {direction.to}",
            "rate": str(direction.rate),
            "delay": str(direction.delay),
            "loss": str(direction.loss),
            "queue": str(direction.queue),
            "state": str(direction.get("state") or "up"),
            "Mbit/s": f"{passed / 1e6:.3f}",
            "frames": str(direction.frames_out),
            "dropped": str(dropped),
        })
    return rows


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\n")
