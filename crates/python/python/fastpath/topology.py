"""Topologies: hosts, routers, switches and the links between them."""

from __future__ import annotations

import functools
import json
import math
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from . import _native
from ._description import Path, Placed
from .errors import Error, Mistake, Mistakes

if TYPE_CHECKING:
    from .lab import Lab
    from .replay import Frames, Replayed

__all__ = ["Checked", "Link", "Node", "Topology"]

_HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True)
class _Files:
    texts: Mapping[str, str]
    directory: str


@dataclass(frozen=True)
class Checked:
    """A topology without mistakes.

    Attributes
    ----------
    description
        The resolved description in the canonical form, with every default filled in.
    warnings
        Values that are legal but probably not meant.
    """

    description: dict[str, Any]
    warnings: list[str]


class _Part:
    """A node or a link: its keys of the canonical form."""

    def __init__(self, keys: dict[str, Any]) -> None:
        self.keys = keys
        self.source = _caller()


class Node(_Part):
    """A host, router or switch of a topology."""

    @property
    def name(self) -> str:
        return str(self.keys["name"])

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{self.keys['kind']} {self.name}>"


class Link(_Part):
    """A link between two nodes."""

    @property
    def name(self) -> str:
        return str(self.keys.get("name") or "-".join(self.keys["between"]))

    def __repr__(self) -> str:
        return f"<link {self.name}>"


class Topology:
    """A network: nodes, links, changes over time.

    The keys of nodes and links are those of a spec file; ``fastpath check --schema`` has the list.

    Examples
    --------
    >>> net = Topology(seed=7)
    >>> a, r, b = net.host("a"), net.router("r"), net.host("b")
    >>> up = net.link(a, r, rate="10Mbit", delay="25ms", queue="codel")
    >>> down = net.link(r, b, forward={"loss": "1%"})
    >>> [link["name"] for link in net.check().description["links"]]
    ['a-r', 'r-b']
    """

    def __init__(self, *, seed: Optional[int] = None, family: Optional[str] = None) -> None:
        self.seed = seed
        self.family = family
        self.nodes: list[Node] = []
        self.links: list[Link] = []
        self.events: list[_Part] = []
        self.groups: list[_Part] = []
        self.engine: dict[str, Any] = {}
        self._texts: dict[str, str] = {}
        self._directory = os.getcwd()

    @classmethod
    def from_file(cls, path: Union[str, os.PathLike[str]]) -> Topology:
        """Read a spec file, as the program ``fastpath check`` does."""
        text, _ = _native.check_file(path)
        return cls.from_dict(json.loads(text), directory=os.path.dirname(os.path.abspath(path)))

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], *, directory: str = ".") -> Topology:
        """Make a topology of a description in the canonical form."""
        net = cls(seed=description.get("seed"), family=description.get("family"))
        net.nodes = [Node(dict(node)) for node in description.get("nodes", ())]
        net.links = [Link(dict(link)) for link in description.get("links", ())]
        net.events = [_Part(dict(event)) for event in description.get("events", ())]
        net.groups = [_Part(dict(group)) for group in description.get("groups", ())]
        net.engine = dict(description.get("engine", {}))
        net._directory = os.path.abspath(directory)
        return net

    def node(self, kind: str, name: str, **keys: Any) -> Node:
        """Add a node of a kind of a spec file, such as ``nat`` or ``uplink``."""
        node = Node({"name": name, "kind": kind, **keys})
        self.nodes.append(node)
        return node

    def host(self, name: str, **keys: Any) -> Node:
        """Add a host: where frames enter and leave, and where programs of a lab run."""
        return self.node("host", name, **keys)

    def router(self, name: str, **keys: Any) -> Node:
        """Add a router, which forwards packets."""
        # `kind` of a router in a spec file is another key in the canonical form.
        return self.node("router", name, **keys)

    def switch(self, name: str, **keys: Any) -> Node:
        """Add a switch, which forwards frames by learned addresses."""
        return self.node("switch", name, **keys)

    def openflow(self, name: str, **keys: Any) -> Node:
        """Add a switch that forwards frames by OpenFlow tables."""
        return self.node("openflow", name, **keys)

    def link(self, a: Union[Node, str], b: Union[Node, str], **keys: Any) -> Link:
        """Add a link. Without values it is ideal: no rate limit, no delay, no loss."""
        link = Link({"between": [str(a), str(b)], **keys})
        self.links.append(link)
        return link

    def event(self, at: str, **keys: Any) -> None:
        """Change links at a time of the run: ``net.event("10s", link="a-b", delay="50ms")``."""
        self.events.append(_Part({"at": at, **keys}))

    def group(self, name: str, **keys: Any) -> None:
        """Add a group of links whose traces start together."""
        self.groups.append(_Part({"name": name, **keys}))

    def trace(self, name: str, times_s: Iterable[float], **columns: Iterable[Any]) -> str:
        """Make a trace of arrays: the values of a link over time.

        Parameters
        ----------
        name
            A name of its own: ``net.link(a, b, trace=net.trace("lte", [0, 1], rate_mbps=[4, 9]))``.
        times_s
            When each row begins, seconds.
        **columns
            Columns of a trace in CSV, such as ``rate_mbps`` or ``delay_ms``.

        Returns
        -------
        The value of the key ``trace``.
        """
        times = list(times_s)
        listed = {key: list(values) for key, values in columns.items()}
        rows = list(zip(times, *listed.values()))
        lengths = {len(column) for column in listed.values()}
        if lengths - {len(times)}:
            raise Error(f"trace {name}: the columns have different lengths; give a value per time")
        header = ",".join(["time_s", *listed])
        lines = [header, *(",".join(_number(value) for value in row) for row in rows)]
        file = name if name.endswith(".csv") else name + ".csv"
        self._texts[file] = "\n".join(lines) + "\n"
        return file

    def description(self) -> dict[str, Any]:
        """Return what was given so far, in the canonical form."""
        whole: dict[str, Any] = {}
        if self.seed is not None:
            whole["seed"] = self.seed
        if self.family is not None:
            whole["family"] = self.family
        for key, parts in self._parts().items():
            if parts:
                whole[key] = [part.keys for part in parts]
        if self.engine:
            whole["engine"] = self.engine
        return whole

    def check(self) -> Checked:
        """Check and resolve the topology.

        Raises
        ------
        Mistakes
            With every mistake and the line that made it.
        """
        placed = Placed(self.description())
        canonical, mistakes, warnings = _native.check(placed.text, self._files())
        found = [Mistake(self._place(path), what, instead) for path, what, instead in placed.odd]
        for _, column, what, instead in mistakes:
            path = placed.path_at(column)
            if path not in [odd[0] for odd in placed.odd]:
                found.append(Mistake(self._place(path), what, instead))
        if found or canonical is None:
            raise Mistakes(found)
        remarks = [f"{self._place(placed.path_at(column))}: {what}" for _, column, what in warnings]
        return Checked(json.loads(canonical), remarks)

    def replay(
        self,
        inputs: Mapping[str, Union[str, os.PathLike[str], Frames]],
        *,
        outputs: Optional[Mapping[str, Union[str, os.PathLike[str]]]] = None,
        seed: Optional[int] = None,
        packet_log: Optional[Union[str, os.PathLike[str]]] = None,
        progress: Union[bool, Callable[[int, int], object], None] = None,
    ) -> Replayed:
        """Send frames through the network in virtual time.

        Parameters
        ----------
        inputs
            What enters at each host (``"a"``, or ``"a:eth1"``): a capture file, or a pair of times
            in picoseconds and frames. Frames are a list of bytes, or an array of n × length bytes.
            Times in memory count from the earliest time of the captures.
        outputs
            Captures to write, by host.
        seed
            The seed of every random choice; without it that of the topology, or 1.
        packet_log
            A file for the fate of every packet on every link (pcapng).
        progress
            A function of bytes read and bytes in all; True: a bar on the terminal.

        Returns
        -------
        The times of every frame, as arrays. The same inputs and seed give the same arrays.
        """
        from .replay import run

        self.check()
        return run(self, inputs, outputs or {}, seed, packet_log, progress)

    def lab(self, name: Optional[str] = None, **options: Any) -> Lab:
        """Return a lab of this topology: ``with net.lab() as lab``. See :class:`fastpath.Lab`."""
        from .lab import Lab

        self.check()
        return Lab(self, name, **options)

    def write(self, directory: Union[str, os.PathLike[str]], name: str = "topology") -> FilePath:
        """Write the description and its traces to a directory. Returns the description's path."""
        folder = FilePath(directory)
        for file, text in self._texts.items():
            (folder / file).write_text(text)
        path = folder / f"{name}.json"
        path.write_text(json.dumps(self.description(), indent=1))
        return path

    def to_svg(self, title: str = "") -> str:
        """Draw the topology."""
        self.check()
        return _native.draw(self._text(), self._files(), title)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def __repr__(self) -> str:
        return f"<Topology: {len(self.nodes)} nodes, {len(self.links)} links>"

    def _parts(self) -> dict[str, Sequence[_Part]]:
        return {
            "nodes": self.nodes,
            "links": self.links,
            "events": self.events,
            "groups": self.groups,
        }

    def _text(self) -> str:
        return Placed(self.description()).text

    def _files(self) -> _Files:
        return _Files(self._texts, self._directory)

    def _place(self, path: Path) -> str:
        """Return the place of a value: the line of its call, its part, its key."""
        if len(path) < 2 or path[0] not in self._parts():
            return ".".join(map(str, path)) or "topology"
        part = self._parts()[path[0]][path[1]]
        name = getattr(part, "name", None)
        what = f"{path[0][:-1]} {name}" if name else f"{path[0]}[{path[1]}]"
        return ": ".join([part.source, what, *([".".join(map(str, path[2:]))] if path[2:] else [])])


def _number(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        raise Error(f"a trace has the value {value}; write finite numbers, or None to keep the last one")
    return "" if value is None else str(value)


@functools.lru_cache(maxsize=256)
def _is_ours(file: str) -> bool:
    return os.path.dirname(os.path.abspath(file)) == _HERE


def _caller() -> str:
    """Return the first line outside this package that led here."""
    frame = sys._getframe(1)
    while frame.f_back and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{_shown(frame.f_code.co_filename)}:{frame.f_lineno}"


def _shown(file: str) -> str:
    """Return the name of a file as a reader knows it: that of a cell of a notebook is `In[3]`."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    cell = shell.compile.format_code_name(file) if shell is not None else None
    return str(cell[1]) if cell else os.path.basename(file)
