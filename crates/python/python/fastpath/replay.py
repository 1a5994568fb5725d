"""Replays: frames through a network in virtual time, and captures as iterators."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Sequence, Union

from . import _native
from ._arguments import duration_of, seed_of
from ._arrays import frames_of, times_of
from ._progress import Bar
from ._record import Record
from .errors import Error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from .topology import Topology

    Frames = tuple[ArrayLike, Union[Sequence[bytes], NDArray[np.uint8]]]

__all__ = ["Capture", "Packet", "Replayed"]


# The last time; also that of a frame that was not delivered.
_LAST_PS = 2**64 - 1


@dataclass(frozen=True)
class Packet:
    """A packet of a capture."""

    time_ns: Optional[int]
    """Nanoseconds since 1970; None if the capture has no time for it."""
    data: bytes
    """The captured bytes."""
    length: int
    """Bytes on the wire."""


class Capture:
    """The packets of a capture (pcap or pcapng): ``for packet in fp.Capture("in.pcap")``."""

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self.path = os.fspath(path)

    def __iter__(self) -> Iterator[Packet]:
        for time_ns, data, length in _native.CaptureFile(self.path):
            yield Packet(time_ns, data, length)


@dataclass(frozen=True)
class _Options:
    inputs: list[str]
    outputs: list[str]
    packet_log: Optional[str]
    seed: Optional[int]
    until: Optional[str]
    workers: str


@dataclass(frozen=True)
class Settings:
    """What a replay is told beside its inputs and outputs."""

    seed: Optional[int] = None
    until: Optional[str] = None
    packet_log: Optional[Union[str, os.PathLike[str]]] = None
    workers: Union[int, str] = 1


class Replayed:
    """The results of a replay, one element per frame in the order in which the frames entered.

    Attributes
    ----------
    in_ps, out_ps
        When the frame entered and was delivered, picoseconds from time zero (uint64). ``out_ps`` of
        a frame that was not delivered is the largest number: use ``delivered``.
    delivered
        Whether it was delivered (bool).
    length
        Its length in bytes (uint32).
    start_ps
        Time zero, picoseconds since 1970 (int). ``start_ps + out_ps[i]`` is the number in the file
        of ``fastpath replay --times``.
    frames
        The frame accounting: frames in, delivered, dropped by reason, held.
    problems
        Captures that ended early, and why. Their complete packets were used.
    traffic
        A record for each traffic of the topology: packets sent and received, rates, delays.
    transfers
        A record for each traffic over TCP or QUIC: bytes, goodput, segments sent again, answer times.
    links
        A record for each direction of a link: frames and bytes in and out, marked, dropped by
        reason.
    """

    in_ps: NDArray[np.uint64]
    out_ps: NDArray[np.uint64]
    length: NDArray[np.uint32]

    def __init__(self, found: dict[str, Any], inputs: Sequence[str]) -> None:
        self.in_ps = found["in_ps"]
        self.out_ps = found["out_ps"]
        self.length = found["length"]
        self.frames: dict[str, Any] = found["frames"]
        self.seed: int = found["seed"]
        self.start_ps: int = found["start_ns"] * 1000
        self.out_of_order: int = found["out_of_order"]
        self.problems: list[str] = found["problems"]
        self.traffic: list[Record] = json.loads(found["traffic"], object_hook=Record)
        self.transfers: list[Record] = json.loads(found["transfers"], object_hook=Record)
        self.links: list[Record] = json.loads(found["links"], object_hook=Record)
        self._found = found
        names = [traffic.name for traffic in (*self.traffic, *self.transfers)]
        self._inputs = [*inputs, *names]

    @property
    def delivered(self) -> NDArray[np.bool_]:
        delivered: NDArray[np.bool_] = self.edge != 0xFFFF_FFFF
        return delivered

    @property
    def edge(self) -> NDArray[np.uint32]:
        """The number of the interface at which each frame was delivered."""
        edge: NDArray[np.uint32] = self._found["edge"]
        return edge

    @property
    def end(self) -> NDArray[np.str_]:
        """How each frame ended: ``delivered``, a drop reason, ``absorbed`` or ``held``."""
        import numpy as np

        ends: NDArray[np.str_] = np.asarray(self._found["ends"] or [""])[self._found["end"]]
        return ends

    @property
    def source(self) -> NDArray[np.str_]:
        """The input of each frame: the key of ``inputs``, or the name of the traffic."""
        import numpy as np

        names: NDArray[np.str_] = np.asarray(list(self._inputs) or [""])[self._found["input"]]
        return names

    @property
    def destination(self) -> NDArray[np.str_]:
        """The host that received each frame; empty if none did."""
        import numpy as np

        names = np.asarray([*self._found["edges"], ""])
        at: NDArray[np.str_] = names[np.minimum(self.edge, len(names) - 1)]
        return at

    @property
    def drops(self) -> dict[str, int]:
        """The number of dropped frames by reason."""
        dropped: dict[str, int] = self.frames["dropped"]
        return dropped

    def delay_ps(self) -> NDArray[np.uint64]:
        """Return the time that each delivered frame spent in the network."""
        delays: NDArray[np.uint64] = (self.out_ps - self.in_ps)[self.delivered]
        return delays

    def to_dict(self) -> dict[str, Any]:
        """Return the columns, for ``pandas.DataFrame`` or ``polars.DataFrame``."""
        return {
            "source": self.source,
            "in_ps": self.in_ps,
            "out_ps": self.out_ps.astype("int64"),
            "end": self.end,
            "destination": self.destination,
            "length": self.length,
        }

    def __len__(self) -> int:
        return len(self.in_ps)

    def __repr__(self) -> str:
        drops = "".join(f", {count} {reason}" for reason, count in self.drops.items())
        return f"<Replayed: {len(self)} frames, {int(self.delivered.sum())} delivered{drops}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("frames", len(self)), ("delivered", int(self.delivered.sum()))]
        rows += [(f"dropped: {reason}", count) for reason, count in self.drops.items()]
        if self.delivered.any():
            delays = self.delay_ps() / 1e9
            rows += [("delay, mean", f"{delays.mean():.6f} ms"), ("delay, max", f"{delays.max():.6f} ms")]
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows)
        return f"<table>{cells}</table>"


def run(
    net: Topology,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    settings: Settings,
    progress: Union[bool, Callable[[int, int], object], None],
) -> Replayed:
    """Run a replay. See :meth:`fastpath.Topology.replay`."""
    if not inputs and not net.description().get("traffic"):
        raise Error('nothing to replay: write net.replay({"HOST": "FILE.pcap"}), or net.traffic(…)')
    captures = {at: given for at, given in inputs.items() if isinstance(given, (str, os.PathLike))}
    arrays = {at: given for at, given in inputs.items() if at not in captures}
    options = _Options(
        [f"{at}={os.fspath(file)}" for at, file in captures.items()],
        [f"{at}={os.fspath(file)}" for at, file in outputs.items()],
        None if settings.packet_log is None else os.fspath(settings.packet_log),
        None if settings.seed is None else seed_of(settings.seed),
        duration_of("until", settings.until),
        str(settings.workers),
    )
    frames = [_frames(at, given) for at, given in arrays.items()]
    with Bar(progress) as bar:
        found = _native.replay(net._text(), net._files(), frames, options, bar if bar.is_shown else None)
    replayed = Replayed(found, [*captures, *arrays])
    _refuse_late(replayed)
    return replayed


def _refuse_late(replayed: Replayed) -> None:
    """Times end at the largest number of picoseconds: a later one cannot be written."""
    late = replayed.delivered & (replayed.out_ps == _LAST_PS)
    if late.any():
        index = int(late.argmax())
        raise Error(f"input {replayed.source[index]}: the frame that enters at {replayed.in_ps[index]} ps is delivered "
                    "after the last time, 213 days; write earlier times")


def _frames(host: str, given: Any) -> tuple[str, Any, Any, Any]:
    import numpy as np

    at = f"input {host}"
    if not (isinstance(given, tuple) and len(given) == 2):
        raise Error(f"{at}: write a file name, or (times_ps, frames)")
    times = times_of(at, np.asarray(given[0]))
    whole, lengths, count = frames_of(at, given[1])
    if count != len(times):
        raise Error(f"{at}: {len(times)} times and {count} frames; give one time per frame")
    return host, times, whole, lengths

