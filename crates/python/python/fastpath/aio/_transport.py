"""Transports of datagrams on sockets in virtual time."""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Optional

from ._socket import VirtualSocket

if TYPE_CHECKING:
    from ._loop import VirtualEventLoop

__all__ = ["VirtualTransport"]


class VirtualTransport(asyncio.DatagramTransport):
    """Carries datagrams between a protocol and a socket. What is sent leaves at once."""

    def __init__(
        self,
        loop: VirtualEventLoop,
        sock: VirtualSocket,
        protocol: asyncio.DatagramProtocol,
        peer: Optional[tuple[Any, ...]],
    ) -> None:
        super().__init__({"socket": sock, "sockname": sock.getsockname(), "peername": peer})
        self._loop = loop
        self._socket = sock
        self._protocol: Optional[asyncio.DatagramProtocol] = protocol
        self._peer = peer
        self._is_closing = False
        self._waiting: deque[tuple[bytes, tuple[Any, ...]]] = deque()
        # Runs in the context of the code that made the endpoint, as readers of asyncio do.
        self._reader = events.Handle(self._read, (), loop, copy_context())
        assert sock._number is not None
        self._number = sock._number
        loop._transports[self._number] = self
        loop.call_soon(protocol.connection_made, self)

    def sendto(self, data: Any, addr: Any = None) -> None:
        """Send a datagram. What cannot be sent goes to ``error_received``, as in asyncio."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data is {type(data).__name__}; write bytes, a bytearray or a memoryview")
        if self._peer is not None:
            if addr not in (None, self._peer):
                raise ValueError(f"the endpoint sends to {self._peer} only; leave the address out")
            addr = self._peer
        if addr is None:
            raise ValueError("no address to send to; write sendto(data, addr)")
        if self._is_closing:
            return
        try:
            self._socket.send_to(bytes(data), addr)
        except OSError as refused:
            if self._protocol is not None:
                self._protocol.error_received(refused)

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop._transports.pop(self._number, None)
            self._waiting.clear()
            self._loop.call_soon(self._lost, None)

    def abort(self) -> None:
        self.close()

    def get_write_buffer_size(self) -> int:
        """Return 0: a datagram that is sent is in the network."""
        return 0

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return 0, 0

    def set_write_buffer_limits(self, high: Optional[int] = None, low: Optional[int] = None) -> None:
        """Do nothing: there is no buffer."""

    def __repr__(self) -> str:
        state = " closing" if self._is_closing else ""
        return f"<VirtualTransport{state} {self._socket!r}>"

    def _arrived(self, data: bytes, addr: tuple[Any, ...]) -> None:
        """Take a datagram of the network; the protocol gets it in its turn."""
        if self._socket.accepts(addr):
            self._waiting.append((data, addr))
            self._loop._ready.append(self._reader)

    def _read(self) -> None:
        if self._waiting and self._protocol is not None:
            data, addr = self._waiting.popleft()
            self._protocol.datagram_received(data, addr)

    def _lost(self, error: Optional[Exception]) -> None:
        protocol, self._protocol = self._protocol, None
        try:
            if protocol is not None:
                protocol.connection_lost(error)
        finally:
            self._socket.close()
