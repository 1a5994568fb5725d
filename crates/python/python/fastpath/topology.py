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

__all__ = ["Checked", "Link", "Node", "Topology", "Traffic"]

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
    """An element of a list of a description: its keys of the canonical form."""

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


class Traffic(_Part):
    """What one host sends to another without programs."""

    @property
    def name(self) -> str:
        return str(self.keys.get("name") or "{from}-{to}".format(**self.keys))

    def __repr__(self) -> str:
        return f"<traffic {self.name}>"


_KINDS: dict[str, Callable[[dict[str, Any]], _Part]] = {
    "nodes": Node,
    "links": Link,
    "traffic": Traffic,
}


class Topology:
    """A network: nodes, links, traffic, changes over time.

    The keys of nodes, links, traffic and the engine are those of a spec file; ``fastpath check
    --schema`` has the list. A key that is not known is a mistake.

    Parameters
    ----------
    seed
        The seed of all random choices.
    family
        The only family of IP addresses, ``"v4"`` or ``"v6"``; None: both are assigned.
    routes
        ``"dynamic"``: the engine's routers avoid links that are down, from the instant of the
        change. ``"static"`` or None: they do not.
    ecmp
        Whether the engine's routers spread flows over all shortest paths.
    engine
        The settings of a run in real time: ``{"tolerance": "1ms", "late": "drop"}``.

    Examples
    --------
    >>> net = Topology(seed=7, routes="dynamic")
    >>> a, r, b = net.host("a"), net.router("r"), net.host("b")
    >>> up = net.link(a, r, rate="10Mbit", delay="25ms", queue="codel")
    >>> down = net.link(r, b, forward={"loss": "1%"})
    >>> camera = net.traffic(a, b, rate="2Mbit", stop="10s")
    >>> [link["name"] for link in net.check().description["links"]]
    ['a-r', 'r-b']
    """

    def __init__(
        self,
        *,
        seed: Optional[int] = None,
        family: Optional[str] = None,
        routes: Optional[str] = None,
        ecmp: Optional[bool] = None,
        engine: Optional[Mapping[str, Any]] = None,
    ) -> None:
        # What a description has at its top is for the reader to say, which is in the native module.
        self._lists: dict[str, list[Any]] = {key: [] for key, is_list, _ in _native.TOP if is_list}
        self._values: dict[str, Any] = {}
        self.seed = seed
        self.family = family
        self.routes = routes
        self.ecmp = ecmp
        self.engine = dict(engine or {})
        self._texts: dict[str, str] = {}
        self._directory = os.getcwd()

    @classmethod
    def from_file(cls, path: Union[str, os.PathLike[str]]) -> Topology:
        """Read a spec file, as the program ``fastpath check`` does.

        Parameters
        ----------
        path
            A spec (TOML), the canonical form (``.json``), an Emulab script (``.ns``) or a file of
            containerlab (``.yml``).

        Returns
        -------
        The resolved topology: every name, address and value is given.

        Raises
        ------
        Mistakes
            With every mistake and its line in the file.
        """
        text, mistakes, _ = _native.check_file(path)
        if text is None:
            raise Mistakes([Mistake(*mistake) for mistake in mistakes])
        return cls._from_canonical(json.loads(text), os.path.dirname(os.path.abspath(path)))

    @classmethod
    def from_toml(cls, text: str, *, directory: str = ".") -> Topology:
        """Make a topology of the text of a spec file.

        Parameters
        ----------
        text
            TOML, as :meth:`to_toml` returns it.
        directory
            Where the files are that the text names.

        Raises
        ------
        Mistakes
            With every mistake, and its line and column in the text.
        """
        canonical, mistakes = _native.canonical_of_toml(text, _Files({}, directory))
        if mistakes:
            source = _caller()
            raise Mistakes([Mistake(f"{source}: line {line}, column {column} of the text", what, instead)
                            for line, column, what, instead in mistakes])
        return cls._from_canonical(json.loads(canonical), directory)

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], *, directory: str = ".") -> Topology:
        """Make a topology of a description.

        Parameters
        ----------
        description
            The canonical form of a description, or the contents of a spec file.
        directory
            Where the files are that the description names.

        Returns
        -------
        The topology, with everything that the description says: ``description()`` returns its
        canonical form.

        Raises
        ------
        Mistakes
            With every mistake, such as a key that is not known, and where in the description it is.
        """
        placed = Placed(description)
        text, mistakes = _native.canonical(placed.text, _Files({}, directory))
        source = _caller()

        def place(path: Path) -> str:
            return f"{source}: {_dotted(path) or 'description'}"

        _refuse(placed, mistakes, place)
        return cls._from_canonical(json.loads(text), directory)

    @classmethod
    def _from_canonical(cls, description: dict[str, Any], directory: str) -> Topology:
        net = cls()
        for key, value in description.items():
            if key in net._lists:
                make = _KINDS.get(key, _Part)
                net._lists[key] = [make(element) for element in value]
            else:
                net._values[key] = value
        net._directory = os.path.abspath(directory)
        return net

    @property
    def nodes(self) -> list[Node]:
        """The nodes, in the order in which they were added."""
        return self._lists["nodes"]

    @property
    def links(self) -> list[Link]:
        """The links, in the order in which they were added."""
        return self._lists["links"]

    @property
    def seed(self) -> Optional[int]:
        """The seed of all random choices; None: that of a run, or 1."""
        return self._values.get("seed")

    @seed.setter
    def seed(self, seed: Optional[int]) -> None:
        self._values["seed"] = seed

    @property
    def family(self) -> Optional[str]:
        """The only family of IP addresses, ``"v4"`` or ``"v6"``; None: both are assigned."""
        return self._values.get("family")

    @family.setter
    def family(self, family: Optional[str]) -> None:
        self._values["family"] = family

    @property
    def routes(self) -> Optional[str]:
        """``"dynamic"``: the engine's routers avoid links that are down."""
        return self._values.get("routes")

    @routes.setter
    def routes(self, routes: Optional[str]) -> None:
        self._values["routes"] = routes

    @property
    def ecmp(self) -> Optional[bool]:
        """Whether the engine's routers spread flows over all shortest paths."""
        return self._values.get("ecmp")

    @ecmp.setter
    def ecmp(self, ecmp: Optional[bool]) -> None:
        self._values["ecmp"] = ecmp

    @property
    def engine(self) -> dict[str, Any]:
        """The settings of a run in real time: ``net.engine["tolerance"] = "1ms"``."""
        settings: dict[str, Any] = self._values.setdefault("engine", {})
        return settings

    @engine.setter
    def engine(self, settings: Mapping[str, Any]) -> None:
        self._values["engine"] = dict(settings)

    def node(self, kind: str, name: str, **keys: Any) -> Node:
        """Add a node of a kind of a spec file: ``host``, ``router``, ``kernel`` and so on.

        Parameters
        ----------
        kind
            The kind of the canonical form. ``kernel`` is a router whose packets the kernel forwards.
        name
            Unique among nodes.
        **keys
            Keys of a node in a spec.
        """
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

    def nat(self, name: str, *, inside: Union[Link, str, Sequence[Union[Link, str]]], **keys: Any) -> Node:
        """Add a NAT, which forwards packets and translates IPv4 addresses and ports.

        Parameters
        ----------
        name
            Unique among nodes.
        inside
            The links that lead inside, or their names. The others lead outside.
        **keys
            Further keys of a NAT in a spec: ``mapping="address-dependent"``, ``pool``, ``timeouts``.

        Examples
        --------
        >>> net = Topology()
        >>> a, x, b = net.host("a"), net.nat("x", inside="a-x"), net.host("b")
        >>> links = net.link(a, x), net.link(x, b)
        >>> net.check().description["nodes"][1]["inside"]
        ['a-x']
        """
        given = [inside] if isinstance(inside, (Link, str)) else inside
        names = [link.name if isinstance(link, Link) else str(link) for link in given]
        return self.node("nat", name, inside=names, **keys)

    def uplink(self, name: str, *, forward: Optional[Mapping[str, str]] = None, **keys: Any) -> Node:
        """Add an uplink, which joins a lab to the network of its machine.

        Parameters
        ----------
        name
            Unique among nodes.
        forward
            Ports of this machine and the ports of hosts that they lead to:
            ``{"8080": "web:80", "udp:5353": "dns:53"}``.
        **keys
            Further keys of an uplink in a spec.
        """
        if forward is not None:
            keys["forward"] = dict(forward)
        return self.node("uplink", name, **keys)

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

    def traffic(self, source: Union[Node, str], target: Union[Node, str], **keys: Any) -> Traffic:
        """Let a host send datagrams to another, without programs.

        Parameters
        ----------
        source, target
            The host that sends and the host that receives, or their names.
        **keys
            Keys of traffic in a spec: ``rate="2Mbit"`` or ``load="80% of a-b"``,
            ``kind="poisson"``, ``size=1000``, ``start="1s"``, ``stop="20s"``, ``name="camera"``.

        Examples
        --------
        >>> net = Topology()
        >>> link = net.link(net.host("a"), net.host("b"), rate="10Mbit")
        >>> camera = net.traffic("a", "b", rate="8Mbit", size=1000)
        >>> net.replay(until="1s").traffic[0].received
        1000
        """
        traffic = Traffic({"from": str(source), "to": str(target), **keys})
        self._lists["traffic"].append(traffic)
        return traffic

    def event(self, at: str, **keys: Any) -> None:
        """Change links at a time of the run: ``net.event("10s", link="a-b", delay="50ms")``."""
        self._lists["events"].append(_Part({"at": at, **keys}))

    def group(self, name: str, **keys: Any) -> None:
        """Add a group of links whose traces start together."""
        self._lists["groups"].append(_Part({"name": name, **keys}))

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
        # Links find it by its name, with or without the ending that says its format.
        file = name if name.endswith(".csv") else name + ".csv"
        self._texts[file] = "\n".join(lines) + "\n"
        return file

    def description(self) -> dict[str, Any]:
        """Return what was given so far, in the canonical form.

        Raises
        ------
        Mistakes
            With every key and value that a description cannot have. Contradictions between values
            are for :meth:`check`.
        """
        placed = self._placed()
        text, mistakes = _native.canonical(placed.text, self._files())
        _refuse(placed, mistakes, self._place)
        description: dict[str, Any] = json.loads(text)
        return description

    def to_toml(self) -> str:
        """Return the description as the text of a spec file.

        Raises
        ------
        Mistakes
            As :meth:`description`.
        """
        return _native.to_toml(json.dumps(self.description()))

    def check(self) -> Checked:
        """Check and resolve the topology.

        Raises
        ------
        Mistakes
            With every mistake and the line that made it.
        """
        placed = self._placed()
        canonical, mistakes, warnings = _native.check(placed.text, self._files())
        _refuse(placed, mistakes, self._place)
        remarks = [f"{self._place(placed.path_at(column))}: {what}" for _, column, what in warnings]
        return Checked(json.loads(canonical), remarks)

    def replay(
        self,
        inputs: Optional[Mapping[str, Union[str, os.PathLike[str], Frames]]] = None,
        *,
        outputs: Optional[Mapping[str, Union[str, os.PathLike[str]]]] = None,
        seed: Optional[int] = None,
        until: Optional[str] = None,
        packet_log: Optional[Union[str, os.PathLike[str]]] = None,
        progress: Union[bool, Callable[[int, int], object], None] = None,
        workers: Union[int, str] = 1,
    ) -> Replayed:
        """Send frames through the network in virtual time.

        Parameters
        ----------
        inputs
            What enters at each host (``"a"``, or ``"a:eth1"``): a capture file, or a pair of times
            in picoseconds and frames. Frames are a list of bytes, or an array of n × length bytes.
            Times in memory count from the earliest time of the captures. It may be left out if the
            topology has traffic.
        outputs
            Captures to write, by host.
        seed
            The seed of every random choice; without it that of the topology, or 1.
        until
            The time of the run from which nothing enters any more, such as ``"10s"``. Frames in the
            network still arrive. Traffic without a ``stop`` needs it.
        packet_log
            A file for the fate of every packet on every link (pcapng).
        progress
            A function of bytes read and bytes in all; True: a bar on the terminal.
        workers
            Threads that run the network side by side, or ``"auto"``. The results do not depend on it.

        Returns
        -------
        The times of every frame, as arrays. The same inputs and seed give the same arrays.
        """
        from .replay import Settings, run

        self.check()
        return run(self, inputs or {}, outputs or {}, Settings(seed, until, packet_log, workers), progress)

    def lab(self, name: Optional[str] = None, **options: Any) -> Lab:
        """Return a lab of this topology: ``with net.lab() as lab``. See :class:`fastpath.Lab`."""
        from .lab import Lab

        self.check()
        return Lab(self, name, **options)

    def write(self, directory: Union[str, os.PathLike[str]], name: str = "topology") -> FilePath:
        """Write the topology to a directory, with the traces and other files that it names.

        Parameters
        ----------
        directory
            A directory that exists.
        name
            The name of the file of the description, without ``.json``.

        Returns
        -------
        The path of the description, which ``fastpath`` reads.

        Raises
        ------
        Mistakes
            As :meth:`check`.
        """
        self.check()
        folder = FilePath(directory)
        text, files = _native.portable(self._text(), self._files())
        is_here = folder.resolve() == FilePath(self._directory).resolve()
        for file, content in {**files, **self._texts}.items():
            if FilePath(file).is_absolute() or (is_here and file not in self._texts):
                continue
            if ".." in FilePath(file).parts:
                raise Error(f"{file}: it is not below {directory}; write its absolute path")
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(content)
        path = folder / f"{name}.json"
        path.write_text(json.dumps(json.loads(text), indent=1))
        return path

    def to_svg(self, title: str = "") -> str:
        """Draw the topology."""
        self.check()
        return _native.draw(self._text(), self._files(), title)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def __repr__(self) -> str:
        return f"<Topology: {len(self.nodes)} nodes, {len(self.links)} links>"

    def _placed(self) -> Placed:
        """Return everything that was given, with the places of the values."""
        whole: dict[str, Any] = {}
        for key, is_list, is_always_written in _native.TOP:
            if is_list:
                elements = [self._with_files(part.keys) for part in self._lists[key]]
                if elements or is_always_written:
                    whole[key] = elements
            elif self._values.get(key) not in (None, {}):
                whole[key] = self._values[key]
        return Placed(whole)

    def _with_files(self, value: Any, *, is_trace: bool = False) -> Any:
        """Return a value in which traces made by :meth:`trace` have the names of their files."""
        if isinstance(value, Mapping):
            return {key: self._with_files(entry, is_trace=key == "trace" or (is_trace and key == "file"))
                    for key, entry in value.items()}
        is_name = is_trace and isinstance(value, str) and value not in self._texts
        return value + ".csv" if is_name and value + ".csv" in self._texts else value

    def _text(self) -> str:
        return self._placed().text

    def _files(self) -> _Files:
        return _Files(self._texts, self._directory)

    def _place(self, path: Path) -> str:
        """Return the place of a value: the line of its call, its part, its key."""
        if len(path) < 2 or path[0] not in self._lists:
            return _dotted(path) or "topology"
        part = self._lists[path[0]][path[1]]
        name = getattr(part, "name", None)
        what = f"{path[0].removesuffix('s')} {name}" if name else _dotted(path[:2])
        return ": ".join([part.source, what, *([_dotted(path[2:])] if path[2:] else [])])


def _dotted(path: Path) -> str:
    """Return a path as a text: ``links[0].forward.rate``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _refuse(
    placed: Placed, mistakes: Sequence[tuple[int, int, str, str]], place: Callable[[Path], str]
) -> None:
    """Raise the mistakes of a description, if there are any."""
    odd = [path for path, _, _ in placed.odd]
    found = [Mistake(place(path), what, instead) for path, what, instead in placed.odd]
    for _, column, what, instead in mistakes:
        path = placed.path_at(column)
        if path not in odd:
            found.append(Mistake(place(path), what, instead))
    if found:
        raise Mistakes(found)


def _number(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        raise Error(f"a trace has the value {value}; write finite numbers, or None to keep the last one")
    return "" if value is None else str(value)


@functools.lru_cache(maxsize=256)
def _is_ours(file: str) -> bool:
    return os.path.dirname(os.path.abspath(file)) in (_HERE, os.path.join(_HERE, "aio"))


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
