"""UDP sockets of hosts in virtual time, also for programs that make them by ``socket.socket``.

While an event loop in virtual time runs, ``socket.socket`` makes a :class:`VirtualSocket` of a UDP
socket in the thread of the loop. Everything else is a socket of the kernel, as before.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator, Optional

from ._names import resolve_one

if TYPE_CHECKING:
    from ._network import VirtualNetwork

__all__ = ["VirtualSocket", "sockets_are_virtual"]

_KIND_MASK = 0xF
"""The kind of a socket without the flags of Linux, such as ``SOCK_NONBLOCK``."""


class VirtualSocket:
    """A UDP socket of a host: what ``loop.create_datagram_endpoint(sock=…)`` needs of one.

    Options have no effect, except ``IPV6_V6ONLY``, and ``IP_TOS`` and ``IPV6_TCLASS``, whose two
    lowest bits are the ECN field of what is sent (RFC 3168 §5).
    """

    type = socket.SOCK_DGRAM
    proto = socket.IPPROTO_UDP
    timeout = 0.0

    def __init__(self, network: VirtualNetwork, family: int) -> None:
        self.network = network
        self.family = socket.AddressFamily(family)
        self.host: Optional[str] = None
        self._number: Optional[int] = None
        self._own = self._form("::" if self._is_v6 else "0.0.0.0", 0)
        self._peer: Optional[tuple[Any, ...]] = None
        self._ecn = 0
        self._only_v6 = False
        self._is_closed = False

    @property
    def _is_v6(self) -> bool:
        return self.family == socket.AF_INET6

    def _form(self, address: str, port: int) -> tuple[Any, ...]:
        return (address, port, 0, 0) if self._is_v6 else (address, port)

    def bind(self, address: tuple[Any, ...]) -> None:
        """Bind the socket to an address; its host is the one that has it, or on which the code runs."""
        self._check_open()
        if self._number is not None:
            raise OSError(errno.EINVAL, "the socket is bound already")
        wanted, port = resolve_one(self.network, address, self.family)[:2]
        self.host = self.network._host_of_bind(wanted)
        self._number, port = self.network._native.bind(self.host, wanted, port, self._is_v6)
        self._own = self._form(wanted, port)

    def connect(self, address: tuple[Any, ...]) -> None:
        """Send to an address, and receive from it only."""
        if self._number is None:
            self.bind(self._own)
        self._peer = resolve_one(self.network, address, self.family)

    def send_to(self, data: bytes, address: tuple[Any, ...]) -> None:
        """Send a datagram to an address, or to a name that has one.

        Raises
        ------
        OSError
            As a socket of the kernel: the datagram is too long, or there is no way to the address.
        """
        if self._number is None:
            self.bind(self._own)
        native, number = self.network._native, self._number
        assert number is not None
        try:
            native.send(number, address[0], address[1], self._ecn, data)
        except ValueError:
            host, port = resolve_one(self.network, address, self.family)[:2]
            native.send(number, host, port, self._ecn, data)

    def accepts(self, address: tuple[Any, ...]) -> bool:
        """Return whether a datagram from an address is for this socket."""
        if self._peer is not None and address[:2] != self._peer[:2]:
            return False
        return not (self._only_v6 and address[0].startswith("::ffff:"))

    def getsockname(self) -> tuple[Any, ...]:
        self._check_open()
        return self._own

    def getpeername(self) -> tuple[Any, ...]:
        if self._peer is None:
            raise OSError(errno.ENOTCONN, "the socket is not connected")
        return self._peer

    def setsockopt(self, level: int, option: int, value: Any, *_: Any) -> None:
        if (level, option) == (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
            self._only_v6 = bool(value)
        elif (level, option) in ((socket.IPPROTO_IP, socket.IP_TOS), (socket.IPPROTO_IPV6, _TCLASS)):
            self._ecn = int(value) & 3

    def getsockopt(self, level: int, option: int, *_: Any) -> int:
        if (level, option) == (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
            return int(self._only_v6)
        return int((level, option) == (socket.SOL_SOCKET, socket.SO_TYPE)) * socket.SOCK_DGRAM

    def setblocking(self, flag: bool) -> None:
        if flag:
            raise OSError(errno.EINVAL, "a socket in virtual time cannot block: use it by an event loop")

    def settimeout(self, value: Optional[float]) -> None:
        self.setblocking(value != 0)

    def gettimeout(self) -> float:
        return self.timeout

    def fileno(self) -> int:
        """Return -1: the kernel does not know the socket."""
        return -1

    def close(self) -> None:
        self._is_closed = True
        if self._number is not None:
            self.network._native.close(self._number)
            self._number = None

    def __enter__(self) -> VirtualSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise OSError(errno.EBADF, "the socket is closed")

    def __getattr__(self, name: str) -> Any:
        if hasattr(_Real, name):
            what = "use it by loop.create_datagram_endpoint(sock=…)"
            raise AttributeError(f"a socket in virtual time has no {name}(): {what}")
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"<VirtualSocket of {self.host}: {self._own}>"


_TCLASS = getattr(socket, "IPV6_TCLASS", 67)
_Real = socket.socket
# What `socket.socket` was before a loop ran: another package may have replaced it too.
_before: Any = _Real


class _Dispatching(type):
    """The type of the class that stands for ``socket.socket`` while a loop runs."""

    def __call__(
        cls, family: int = -1, type: int = -1, proto: int = -1, fileno: Optional[int] = None, **more: Any
    ) -> Any:
        network = getattr(asyncio._get_running_loop(), "network", None)
        own = cls.__dict__.get("_stands_for_socket", False)
        is_udp = type != -1 and type & _KIND_MASK == socket.SOCK_DGRAM and fileno is None
        if own and network is not None and is_udp and family in (-1, socket.AF_INET, socket.AF_INET6):
            return VirtualSocket(network, socket.AF_INET if family == -1 else family)
        if own:
            return _before(family, type, proto, fileno)
        return super().__call__(family, type, proto, fileno, **more)

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls.__dict__.get("_stands_for_socket", False):
            return isinstance(instance, (_Real, VirtualSocket))
        return super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls.__dict__.get("_stands_for_socket", False):
            return issubclass(subclass, (_Real, VirtualSocket))
        return super().__subclasscheck__(subclass)


class _Standing(_Real, metaclass=_Dispatching):
    _stands_for_socket = True


_Standing.__name__ = _Standing.__qualname__ = "socket"

# How many loops run, in all threads; the first puts the class in its place, the last takes it away.
_running = 0
_lock = threading.Lock()


@contextmanager
def sockets_are_virtual() -> Iterator[None]:
    """Let UDP sockets be virtual in the threads of loops in virtual time."""
    global _running, _before
    with _lock:
        _running += 1
        if _running == 1:
            _before = socket.socket
            socket.socket = _Standing  # type: ignore[misc]
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0 and socket.socket is _Standing:
                socket.socket = _before  # type: ignore[misc]
