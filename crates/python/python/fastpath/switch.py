"""OpenFlow switches in memory: rules, frames through tables, counters."""

from __future__ import annotations

import difflib
import html
import json
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

from . import _native
from ._arguments import whole
from ._arrays import frames_of, times_of
from .errors import Error, Mistake, Mistakes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Switch", "Switched"]

_PORTS_MAX = 65_279
_TABLES_MAX = 254
_FLOWS_MAX = 2**40
# The most ports that an error lists.
_SHOWN_MAX = 16


class Switched:
    """What became of frames: one element per copy, in the order of frames.

    Attributes
    ----------
    packet
        The number of the frame that went in (uint32).
    port
        The port by which the copy left; 0 if it did not leave (uint32).
    """

    packet: NDArray[np.uint32]
    port: NDArray[np.uint32]

    def __init__(self, found: dict[str, Any], count: int) -> None:
        self.packet = found["packet"]
        self.port = found["port"]
        self._found = found
        self._count = count

    @property
    def end(self) -> NDArray[np.str_]:
        """How each copy ended: ``sent``, ``controller``, or a drop reason such as ``table-miss``."""
        import numpy as np

        ends: NDArray[np.str_] = np.asarray(self._found["ends"] or [""])[self._found["end"]]
        return ends

    @property
    def frames(self) -> list[bytes]:
        """The bytes of each copy as it left; a dropped one has none."""
        whole = self._found["bytes"].tobytes()
        starts = [int(start) for start in self._found["start"]]
        return [whole[start:end] for start, end in zip(starts, [*starts[1:], len(whole)])]

    @property
    def drops(self) -> dict[str, int]:
        """The number of dropped frames and copies by reason."""
        return {end: count for end, count in self.ends().items() if end not in ("sent", "controller")}

    def ends(self) -> dict[str, int]:
        """Return the number of copies by their end."""
        import numpy as np

        names = self._found["ends"]
        counts = np.bincount(self._found["end"], minlength=len(names))
        return {name: int(count) for name, count in zip(names, counts)}

    def to_dict(self) -> dict[str, Any]:
        """Return the columns, for ``pandas.DataFrame`` or ``polars.DataFrame``."""
        return {"packet": self.packet, "end": self.end, "port": self.port, "frame": self.frames}

    def __len__(self) -> int:
        return len(self.packet)

    def __repr__(self) -> str:
        ends = ", ".join(f"{count} {end}" for end, count in self.ends().items())
        return f"<Switched: {self._count} frames: {ends or 'none'}>"


class Switch:
    """A switch with OpenFlow 1.3 tables and no real ports.

    Parameters
    ----------
    ports
        The number of ports, named ``p1``, ``p2``, …; or their names. A name such as ``p7`` is port
        7; other names get the free numbers, in order.
    rules
        Flows, groups and meters to begin with; see :meth:`add`.
    tables
        The number of tables, 1 to 254.
    flows
        The largest number of flows in a table.

    Examples
    --------
    >>> switch = Switch(2, "in_port=1,actions=output:2")
    >>> out = switch.send(1, bytes(60))
    >>> out.port.tolist(), switch.flows()[0]["packets"]
    ([2], 1)
    """

    def __init__(
        self,
        ports: Union[int, Sequence[str]] = 0,
        rules: Union[str, Iterable[str]] = (),
        *,
        tables: int = 254,
        flows: int = 1_000_000,
    ) -> None:
        if isinstance(ports, int) and not 0 <= ports <= _PORTS_MAX:
            raise Error(f"a switch with {ports} ports: write 0 to {_PORTS_MAX}")
        whole("flows", flows, 0, _FLOWS_MAX)
        names = [f"p{n}" for n in range(1, ports + 1)] if isinstance(ports, int) else list(map(str, ports))
        whole("tables", tables, 1, _TABLES_MAX)
        self._native = _native.FlowTables(names, tables, flows)
        self._numbers = dict(self._native.names())
        self._now = 0
        self.add(rules)

    def add(self, rules: Union[str, Iterable[str]]) -> None:
        """Add flows, groups and meters in the syntax of ``ovs-ofctl``, one per line.

        Raises
        ------
        Mistakes
            With every mistake and its line. After a mistake in the syntax nothing has changed; of
            rules that the switch refuses (a full table, a missing group) the others are in force.
        """
        text = rules if isinstance(rules, str) else "\n".join(map(str, rules))
        self._raise(self._native.add(text), "rules")

    def delete(self, match: str = "", *, strict: bool = False) -> int:
        """Delete flows, and return how many.

        Parameters
        ----------
        match
            Flows within this match, in the syntax of ``ovs-ofctl``: ``"table=0,tcp"``. An empty one
            selects all flows. Without ``table=`` flows of all tables are meant.
        strict
            Only the flow of exactly this match and ``priority=``.
        """
        deleted, mistakes = self._native.delete(match, strict)
        self._raise(mistakes, "match")
        return deleted

    def send(
        self,
        port: Union[int, str, ArrayLike],
        frames: Union[bytes, Sequence[bytes], NDArray[np.uint8]],
        times_ps: Optional[ArrayLike] = None,
    ) -> Switched:
        """Send frames through the tables.

        Parameters
        ----------
        port
            The port of entry, by number or name; or an array of numbers, one per frame.
        frames
            One frame, a list of frames, or an array of n × length bytes (uint8).
        times_ps
            When each frame arrives, picoseconds: for timeouts and meters. Times go on from call to
            call and may not run back. Without them all frames arrive at the time of the last one.
        """
        import numpy as np

        given = [bytes(frames)] if isinstance(frames, (bytes, bytearray, memoryview)) else frames
        whole, lengths, count = frames_of("send", given)
        if times_ps is None:
            times = np.full(count, self._now, np.uint64)
        else:
            times = times_of("send", np.asarray(times_ps))
            if len(times) != count:
                raise Error(f"send: {len(times)} times and {count} frames; give one time per frame")
            before_each = np.concatenate((np.asarray([self._now], np.uint64), times[:-1]))
            back = np.flatnonzero(times < before_each)
            if back.size:
                index = int(back[0])
                what = f"times_ps[{index}] = {times[index]} ps is before {before_each[index]} ps"
                raise Error(f"send: {what}; times of a switch go forward, from call to call too")
        ports = self._ports_of(port, count)
        if count:
            self._now = int(times[-1])
        return Switched(self._native.send(times, ports, whole, lengths), count)

    def set_link(self, port: Union[int, str], state: str) -> None:
        """Take the link of a port ``"up"`` or ``"down"``: for fast-failover groups."""
        if state not in ("up", "down"):
            raise Error(f"port {port}: the state {state!r} is not one; write 'up' or 'down'")
        self._native.set_link(self._number(port), state == "up")

    def flows(self, table: Optional[int] = None) -> list[dict[str, Any]]:
        """Return the flows in the order of lookup: match, actions, counters."""
        flows: list[dict[str, Any]] = self._state()["flows"]
        return [flow for flow in flows if table is None or flow["table"] == table]

    def tables(self) -> list[dict[str, Any]]:
        """Return the counters of tables that have flows or were looked up."""
        found: list[dict[str, Any]] = self._state()["tables"]
        return found

    def ports(self) -> list[dict[str, Any]]:
        """Return the ports: number, name, link state, counters."""
        found: list[dict[str, Any]] = self._state()["ports"]
        return found

    def explain(self, packet: Union[str, bytes, None] = None, *, in_port: Union[int, str] = 1) -> str:
        """Return the structures made of the tables, and the path of a packet through them.

        Parameters
        ----------
        packet
            Fields as in a rule (``"in_port=1,tcp,nw_dst=10.0.0.1"``), or a frame as bytes, which
            arrives on ``in_port``.
        """
        text = packet.hex() if isinstance(packet, (bytes, bytearray, memoryview)) else packet
        return self._native.explain(text, self._number(in_port))[0]

    def _state(self) -> Mapping[str, Any]:
        state: Mapping[str, Any] = json.loads(self._native.state())
        return state

    def _number(self, port: Union[int, str]) -> int:
        if isinstance(port, str):
            if port not in self._numbers:
                raise self._no_port(port)
            return self._numbers[port]
        if isinstance(port, bool) or not 0 < int(port) < 1 << 32:
            raise Error(f"{port!r} is not a port; write its number from 1, or its name")
        if int(port) not in self._numbers.values():
            raise self._no_port(port)
        return int(port)

    def _no_port(self, port: Union[int, str]) -> Error:
        """Return the error of a port that the switch does not have, with the nearest one."""
        names = [*self._numbers, *map(str, self._numbers.values())]
        near = difflib.get_close_matches(str(port), names, 1, 0.0)
        shown = list(self._numbers.items())[:_SHOWN_MAX]
        have = ", ".join(name if isinstance(port, str) else f"{number} {name}" for name, number in shown)
        more = f", and {len(self._numbers) - _SHOWN_MAX} more" if len(self._numbers) > _SHOWN_MAX else ""
        hint = f"; write {near[0]}" if near else ""
        return Error(f"there is no port {port} (have: {have or 'none'}{more}){hint}")

    def _ports_of(self, port: Any, count: int) -> Any:
        import numpy as np

        if isinstance(port, (int, str, np.integer)):
            return np.asarray([self._number(port if isinstance(port, str) else int(port))], np.uint32)
        ports = np.asarray(port)
        if ports.ndim != 1 or ports.dtype.kind not in "iu":
            what = f"an array of {ports.ndim} dimensions and type {ports.dtype}"
            raise Error(f"send: ports are {what}; write a number, a name, or one number per frame")
        if len(ports) != count:
            raise Error(f"send: {len(ports)} ports and {count} frames; give one port per frame")
        bad = np.flatnonzero((ports < 1) | (ports > 0xFFFF_FFFF))
        if bad.size:
            raise Error(f"send: ports[{int(bad[0])}] = {ports[bad[0]]} is not a port; numbers begin at 1")
        absent = np.flatnonzero(~np.isin(ports, list(self._numbers.values())))
        if absent.size:
            raise Error(f"send: ports[{int(absent[0])}]: {self._no_port(int(ports[absent[0]]))}")
        return np.ascontiguousarray(ports, np.uint32)

    @staticmethod
    def _raise(mistakes: Sequence[tuple[int, str, str]], what: str) -> None:
        if mistakes:
            raise Mistakes([Mistake(f"{what}:{line}", wrong, instead) for line, wrong, instead in mistakes])

    def __repr__(self) -> str:
        return f"<Switch: {len(self._numbers)} ports, {len(self.flows())} flows>"

    def _repr_html_(self) -> str:
        keys = ("table", "priority", "match", "actions", "packets", "bytes")
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(flow[key]))}</td>" for key in keys) + "</tr>"
            for flow in self.flows()[:100]
        )
        heads = "".join(f"<th>{key}</th>" for key in keys)
        return f"<table><tr>{heads}</tr>{rows}</table>"
