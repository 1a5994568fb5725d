"""Networks whose hosts run programs of asyncio."""

from __future__ import annotations

import contextvars
import errno
import ipaddress
import os
import warnings
from typing import TYPE_CHECKING, Any, Coroutine, Mapping, Optional, Sequence, TypeVar, Union

from .. import _native
from .._arguments import seed_of
from .._description import Placed
from .._record import Record
from ..errors import Error, Mistake, Mistakes
from ..topology import Topology
from ._loop import VirtualEventLoop, run
from ._names import unmapped

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["VirtualLink", "VirtualNetwork"]

T = TypeVar("T")

# The host on which the code of a task runs, and its network. Tasks inherit it.
_HOST: contextvars.ContextVar[Optional[tuple[VirtualNetwork, str]]] = contextvars.ContextVar(
    "fastpath_host", default=None
)


class VirtualLink:
    """A link of a network in virtual time."""

    def __init__(self, network: VirtualNetwork, name: str) -> None:
        self.network = network
        self.name = name

    def set(self, *, from_: Optional[str] = None, **values: Any) -> None:
        """Set values of the link now, all at one instant.

        Parameters
        ----------
        from_
            The node where the direction begins; without it both directions change.
        **values
            Keys of a link in a spec: ``delay="50ms"``, ``rate="5Mbit"``, ``state="down"``.
        """
        placed = Placed(values)
        mistakes = [(".".join(map(str, path)), what, instead) for path, what, instead in placed.odd]
        if not mistakes:
            start = None if from_ is None else str(from_)
            refused = self.network._native.change_link(self.name, start, placed.text)
            mistakes = [("", what, instead) for what, instead in refused]
        if mistakes:
            name = f"link {self.name}"
            raise Mistakes([Mistake(f"{name}: {key}" if key else name, what, instead)
                            for key, what, instead in mistakes])

    def __repr__(self) -> str:
        return f"<link {self.name} of {self.network!r}>"


class VirtualNetwork:
    """A network in virtual time, whose hosts run coroutines.

    Parameters
    ----------
    topology
        A :class:`fastpath.Topology`, the text of a spec file, or the path of one (``Path``).
    seed
        The seed of every random choice of the network; without it that of the topology, or 1.
    packet_log
        A file for the fate of every packet on every link (pcapng).
    names
        Further names of hosts, for programs that connect to a name or address of their own:
        ``{"localhost": "server", "127.0.0.1": "server"}``.

    Examples
    --------
    >>> network = VirtualNetwork("[host.a]\\n[host.b]\\n[[link]]\\nbetween = ['a', 'b']")
    >>> network.hosts
    {'a': ['10.0.0.1', 'fd00::1'], 'b': ['10.0.0.2', 'fd00::2']}
    """

    def __init__(
        self,
        topology: Union[Topology, str, os.PathLike[str]],
        *,
        seed: Optional[int] = None,
        packet_log: Optional[Union[str, os.PathLike[str]]] = None,
        names: Optional[Mapping[str, str]] = None,
    ) -> None:
        self.topology = _topology(topology)
        description = self.topology.check().description
        self._links = [str(link["name"]) for link in description["links"]]
        if description.get("traffic"):
            # What an author writes has an effect, or is named.
            traffic = ", ".join(str(traffic["name"]) for traffic in description["traffic"])
            warnings.warn(f"traffic {traffic} is not sent: hosts send what programs send here", stacklevel=2)
        given = self.topology.seed if seed is None else seed
        self.seed = seed_of(1 if given is None else given)
        log = None if packet_log is None else os.fspath(packet_log)
        self._native = _native.VirtualSockets(
            self.topology._text(), self.topology._files(), self.seed, log
        )
        self.hosts: dict[str, list[str]] = dict(self._native.hosts())
        self.names = dict(names or {})
        for name, host in self.names.items():
            if host not in self.hosts:
                raise Error(f"names[{name!r}]: {self._no_host(host)}")
        self._owners = {address: host for host, own in self.hosts.items() for address in own}

    def run(self, main: Coroutine[Any, Any, T], *, host: Optional[str] = None, debug: Optional[bool] = None) -> T:
        """Run a coroutine to its end, as ``asyncio.run`` does, and return its result.

        Time goes on where an earlier run has ended. Sockets that are open at the end are closed.

        Parameters
        ----------
        main
            The coroutine.
        host
            The host on which it runs, as in ``with network.on(host)``.
        debug
            Whether asyncio's debug mode is on.

        Raises
        ------
        Stalled
            Nothing can happen any more and the coroutine waits, or time cannot go on.
        """
        if host is None:
            return run(VirtualEventLoop(self), main, debug)
        try:
            on = self.on(host)
        except Error:
            main.close()
            raise
        with on:
            return run(VirtualEventLoop(self), main, debug)

    def on(self, host: str) -> _On:
        """Return a context in which programs run on a host: ``with network.on("client"):``.

        Sockets that are bound in it to no address of their own (``0.0.0.0``, ``::``) are those of
        the host. Tasks that are made in it run on the host too. An address decides over it.
        """
        if host not in self.hosts:
            raise Error(self._no_host(host))
        return _On(self, host)

    @property
    def host(self) -> Optional[str]:
        """The host on which the calling code runs; None outside of :meth:`on`."""
        found = _HOST.get()
        return found[1] if found is not None and found[0] is self else None

    @property
    def now_ps(self) -> int:
        """The time, picoseconds. That of the event loop (``loop.time()``) is seconds."""
        return self._native.now_ps()

    def link(self, name: str) -> VirtualLink:
        """Return a link, to change it: ``network.link("a-b").set(delay="50ms")``."""
        if name not in self._links:
            raise Error(f"no link {name} (have: {', '.join(self._links)})")
        return VirtualLink(self, name)

    def capture(
        self, path: Union[str, os.PathLike[str]], hosts: Union[str, Sequence[str]] = ()
    ) -> None:
        """Start a capture: frames as they pass the interfaces of hosts, both ways.

        Parameters
        ----------
        path
            The file (pcapng). It is complete whenever :meth:`run` has ended. Its packets have times
            from 1970 on in nanoseconds, and exact ones in their comments.
        hosts
            The captured hosts; without them all.
        """
        captured = [hosts] if isinstance(hosts, str) else list(hosts)
        self._native.capture(os.fspath(path), captured)

    @property
    def frames(self) -> Record:
        """The frame accounting: frames in, delivered, dropped by reason, held."""
        return Record(self._native.counters()[0])

    @property
    def discarded(self) -> Record:
        """Packets that reached a host and no socket: ``no_socket``, ``bad_checksum``, ``full``, …"""
        return Record(self._native.counters()[1])

    def __repr__(self) -> str:
        return f"<VirtualNetwork: {len(self.hosts)} hosts, seed {self.seed}, at {self.now_ps / 10**12} s>"

    def _no_host(self, host: str) -> str:
        return f"no host {host} (have: {', '.join(self.hosts)})"

    def _host_named(self, name: str) -> Optional[str]:
        """Return the host of a name, or None."""
        return name if name in self.hosts else self.names.get(name)

    def _host_of_bind(self, address: str) -> str:
        """Return the host whose socket is bound to an address.

        Raises
        ------
        OSError
            No host has the address.
        Error
            Every host has it, and the code runs on none.
        """
        plain = unmapped(address)
        owner = self._owners.get(plain)
        if owner is not None:
            return owner
        have = "; ".join(f"{host}: {', '.join(own)}" for host, own in self.hosts.items())
        if not ipaddress.ip_address(plain).is_unspecified:
            raise OSError(errno.EADDRNOTAVAIL, f"no host has the address {address} ({have})")
        if self.host is None:
            raise Error(f'a socket is bound to {address}, which every host has: write with network.on("HOST"), '
                        f"or an address of a host ({have})")
        return self.host


class _On:
    """The context of :meth:`VirtualNetwork.on`; it may be entered again."""

    def __init__(self, network: VirtualNetwork, host: str) -> None:
        self._value = (network, host)
        self._tokens: list[contextvars.Token[Any]] = []

    def __enter__(self) -> None:
        self._tokens.append(_HOST.set(self._value))

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        _HOST.reset(self._tokens.pop())


def _topology(given: Union[Topology, str, os.PathLike[str]]) -> Topology:
    if isinstance(given, Topology):
        return given
    if not isinstance(given, str):
        return Topology.from_file(given)
    if given and not set(given) & set("=[\n"):
        raise Error(f"{given!r} is not the text of a spec file; write Path({given!r}) for a file")
    return Topology.from_toml(given)
