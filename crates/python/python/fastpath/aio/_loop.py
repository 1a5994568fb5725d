"""An event loop of asyncio whose clock is that of a network.

    callbacks that are ready ─▶ run ─▶ none is left ─▶ time moves to the next timer or arrival ─┐
              ▲                                                                                 │
              └─────────────────────────────────────────────────────────────────────────────────┘

asyncio's own loop runs the callbacks; its selector is this module's, which never waits.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import itertools
import math
import socket
import threading
from asyncio import events
from typing import TYPE_CHECKING, Any, Callable, Coroutine, NoReturn, Optional, Sequence, TypeVar

from ..errors import Error
from ._names import Info, resolve, unmapped
from ._socket import VirtualSocket, sockets_are_virtual
from ._transport import VirtualTransport

if TYPE_CHECKING:
    from collections import deque

    from ._network import VirtualNetwork

__all__ = ["Stalled", "Unsupported", "VirtualEventLoop", "run"]

T = TypeVar("T")

PS_PER_S = 10**12
LEAST_PS = 1000
"""A timer for the present or the past goes off that much later."""
SPIN_TURNS = 1000
SPIN_PS = 10_000_000
"""After `SPIN_TURNS` turns in which nothing else has come, that much later: a program that spins takes time."""
LAST_PS = 2**64 - 1
"""The last time of a network, 213 days. A timer that is later never goes off."""
TURNS_MAX = 1_000_000
"""Turns of the loop in which time does not move, or only by timers for the past, after which a program
is taken not to let it pass."""
SILENCE_MAX = 1_000
"""Calls of the network (of 100000 events) in a row that end without an arrival or a timer."""
SHOWN_MAX = 10
"""Tasks that an error names."""


class Stalled(Error):
    """A program waits and nothing can happen, or it does not let time pass.

    The text has the time, and where its tasks wait.
    """


class Unsupported(Error, NotImplementedError):
    """The loop has no such operation in virtual time. The text says what to do."""


class _Selector:
    """What asyncio's loop asks when it has run all that was ready."""

    def __init__(self, loop: VirtualEventLoop) -> None:
        self._loop = loop

    def select(self, timeout: Optional[float]) -> list[Any]:
        self._loop._turn(is_idle=timeout != 0)
        return []


class VirtualEventLoop(asyncio.BaseEventLoop):
    """An event loop in the virtual time of a network.

    Its time is that of the network, in seconds from 0. Timers go off at the picosecond that is
    nearest to the number of seconds, or the first one that is not before it as a number: the time
    after ``sleep(0.1)`` at time 0 is 0.1. (A float of seconds has a resolution of 0.1 ps at 1000 s,
    of 2 ns at 100 days.) Timers of one instant go off in the order in which they were set, before
    datagrams that arrive at it. A timer for the present or the past goes off 1 ns later: programs
    that set one again for the time that has come rely on a clock that goes on. (10 us later, if that
    has happened 1000 times and nothing else: such a program spins.)

    Endpoints of ``create_datagram_endpoint`` are UDP sockets of hosts; see
    :meth:`VirtualNetwork.on` for which. ``getaddrinfo`` knows the names of hosts. Time stands still
    while functions run in an executor (``asyncio.to_thread``). There is no TCP, no process and no
    signal.

    Parameters
    ----------
    network
        The network. :meth:`VirtualNetwork.run` makes a loop of its own; this class is for runners
        that take a factory: ``asyncio.Runner(loop_factory=lambda: VirtualEventLoop(network))``.
    """

    # Of asyncio's loop; the types are not in its stubs.
    _ready: deque[events.Handle]

    def __init__(self, network: VirtualNetwork) -> None:
        super().__init__()
        self.network = network
        self._native = network._native
        self._selector = _Selector(self)
        self._transports: dict[int, VirtualTransport] = {}
        # Each with its time, its number, and whether it was set for the present or the past.
        self._timers: list[tuple[int, int, events.TimerHandle, bool]] = []
        self._timer_numbers = itertools.count()
        self._timers_cancelled = 0
        # Functions that run in executors, and whether one has something for the loop.
        self._jobs = 0
        self._woken = threading.Event()
        self._turns = 0
        self._silence = 0
        self._set_now()

    # Time

    def time(self) -> float:
        """Return the time of the network, seconds."""
        return self._now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Call a function at a time; see the class for how the float is rounded."""
        base: Any = self
        base._check_closed()
        if self.get_debug():
            base._check_thread()
            base._check_callback(callback, "call_at")
        timer = events.TimerHandle(when, callback, args, self, context)
        if when < LAST_PS / PS_PER_S:
            ps = _ps_of(when)
            is_late = ps <= self._now_ps
            if is_late:
                ps = self._now_ps + (LEAST_PS if self._turns < SPIN_TURNS else SPIN_PS)
            heapq.heappush(self._timers, (ps, next(self._timer_numbers), timer, is_late))
            timer._scheduled = True  # type: ignore[attr-defined]
        elif math.isnan(when):
            raise ValueError("the time of a timer is nan; write a number of seconds")
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if not handle._scheduled:  # type: ignore[attr-defined]
            return
        self._timers_cancelled += 1
        if self._timers_cancelled > 100 and 2 * self._timers_cancelled > len(self._timers):
            self._timers = [timer for timer in self._timers if not timer[2].cancelled()]
            heapq.heapify(self._timers)
            self._timers_cancelled = 0

    def _set_now(self) -> None:
        self._now_ps = self._native.now_ps()
        self._now = self._now_ps / PS_PER_S

    def _turn(self, *, is_idle: bool) -> None:
        """Begin another turn of the loop; time moves if nothing is ready."""
        self._turns += 1
        if self._turns > TURNS_MAX:
            self._turns = 0
            timers = [timer[2] for timer in self._timers[:1]]
            ready = dict.fromkeys(map(_shown_handle, [*list(self._ready)[:SHOWN_MAX], *timers]))
            raise Stalled(f"time stands at {self._now} s: the loop has run {TURNS_MAX} times there, "
                          f"the last time for {', '.join(ready) or 'nothing'}")
        if not is_idle:
            return
        if self._jobs:
            self._woken.wait()
            self._woken.clear()
            return
        self._advance()

    def _advance(self) -> None:
        """Move time to the next timer or arrival, and make ready what waits for it."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
            self._timers_cancelled -= 1
        until = max(timers[0][0], self._now_ps) if timers else None
        if until is None and not self._native.is_active():
            raise Stalled(f"nothing happens after {self._now} s: no timer is set and no packet is on its way; "
                          f"waiting: {self._shown_tasks()}")
        before = self._now_ps
        arrived = self._native.advance(until)
        self._set_now()
        has_come = bool(arrived)
        while timers and timers[0][0] <= self._now_ps:
            _, _, timer, is_late = heapq.heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer.cancelled():
                self._timers_cancelled -= 1
            else:
                self._ready.append(timer)
                has_come = has_come or not is_late
        if has_come and self._now_ps != before:
            self._turns = 0
        for number, data, addr in arrived:
            transport = self._transports.get(number)
            if transport is not None:
                transport._arrived(data, addr)
        self._silence = 0 if self._ready else self._silence + 1
        if self._silence > SILENCE_MAX:
            self._silence = 0
            raise Stalled(f"at {self._now} s links have changed for long and no packet has arrived; "
                          f"waiting: {self._shown_tasks()}")

    def _shown_tasks(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        shown = [_shown_task(task) for task in tasks[:SHOWN_MAX]]
        if len(tasks) > SHOWN_MAX:
            shown.append(f"{len(tasks) - SHOWN_MAX} more")
        return ", ".join(shown) or "a future that no task sets"

    # What asyncio's loop needs of its kinds

    def _process_events(self, event_list: Sequence[Any]) -> None:
        """Do nothing: what has happened is ready already."""

    def _write_to_self(self) -> None:
        self._woken.set()

    def run_forever(self) -> None:
        with sockets_are_virtual():
            super().run_forever()

    def close(self) -> None:
        if not self.is_closed() and not self.is_running():
            for transport in list(self._transports.values()):
                transport._socket.close()
            self._transports.clear()
            self._timers.clear()
        super().close()

    # Executors: time waits for them

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = super().run_in_executor(executor, func, *args)
        self._jobs += 1
        future.add_done_callback(self._end_job)
        return future

    def _end_job(self, _: object) -> None:
        self._jobs -= 1

    async def shutdown_default_executor(self, *args: Any, **options: Any) -> None:
        self._jobs += 1
        try:
            await super().shutdown_default_executor(*args, **options)
        finally:
            self._jobs -= 1

    # Names

    async def getaddrinfo(
        self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Info]:
        """Return the addresses of a host of the topology, IPv4 before IPv6."""
        return resolve(self.network, host, port, family=family, kind=type, flags=flags)

    async def getnameinfo(self, sockaddr: tuple[Any, ...], flags: int = 0) -> tuple[str, str]:
        """Return the name of the host that has an address, and the port as text."""
        address, port = sockaddr[:2]
        name = None if flags & socket.NI_NUMERICHOST else self.network._owners.get(unmapped(address))
        if name is None and flags & socket.NI_NAMEREQD:
            raise socket.gaierror(socket.EAI_NONAME, f"no host of the network has the address {address}")
        return name or address, str(port)

    # Endpoints

    async def create_datagram_endpoint(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], Any],
        local_addr: Optional[tuple[Any, ...]] = None,
        remote_addr: Optional[tuple[Any, ...]] = None,
        *,
        family: int = 0,
        proto: int = 0,
        flags: int = 0,
        reuse_address: Optional[bool] = None,
        reuse_port: Optional[bool] = None,
        allow_broadcast: Optional[bool] = None,
        sock: Any = None,
    ) -> tuple[VirtualTransport, Any]:
        """Make an endpoint on a UDP socket of a host.

        A local address decides the host. Without one, or with one that every host has (``0.0.0.0``,
        ``::``), it is that of :meth:`VirtualNetwork.on`.
        """
        if isinstance(local_addr, str) or isinstance(remote_addr, str) or family == socket.AF_UNIX:
            raise _unsupported("Unix sockets", "give pairs of an address and a port")
        if reuse_port or allow_broadcast:
            raise _unsupported("reuse_port and allow_broadcast", "leave them out")
        if sock is None:
            sock = self._open(local_addr, remote_addr, family, flags)
        elif local_addr or remote_addr or family or proto or flags or reuse_address:
            raise ValueError("a socket has its addresses; give sock= alone")
        elif not isinstance(sock, VirtualSocket):
            what = "make it by socket.socket() while the loop runs, or give local_addr="
            raise _unsupported(f"endpoints on sockets of the kernel ({sock!r})", what)
        elif sock._number is None:
            sock.bind(sock.getsockname())
        protocol = protocol_factory()
        transport = VirtualTransport(self, sock, protocol, sock._peer)
        try:
            # `connection_made` runs meanwhile.
            await asyncio.sleep(0)
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    def _open(
        self,
        local: Optional[tuple[Any, ...]],
        remote: Optional[tuple[Any, ...]],
        family: int,
        flags: int,
    ) -> VirtualSocket:
        """Return a socket that is bound to a local address, and connected to a remote one."""
        if local is None and remote is None and not family:
            raise ValueError("no address and no family; write local_addr= or remote_addr=")
        locals_ = self._resolved(local, family, flags)
        remotes = self._resolved(remote, family, flags)
        families: list[int] = [info[0] for info in locals_ or remotes] or [family]
        both = [own for own in families if not remotes or any(info[0] == own for info in remotes)]
        if not both:
            raise ValueError(f"{local} and {remote} have no family of addresses in common")
        made = VirtualSocket(self.network, both[0])
        first = next((info[4] for info in locals_ if info[0] == both[0]), None)
        made.bind(made.getsockname() if first is None else first)
        if remote is not None:
            made.connect(next(info[4] for info in remotes if info[0] == both[0]))
        return made

    def _resolved(self, address: Optional[tuple[Any, ...]], family: int, flags: int) -> list[Info]:
        if address is None:
            return []
        return resolve(self.network, *address[:2], family=family, kind=socket.SOCK_DGRAM, flags=flags)


def run(loop: VirtualEventLoop, main: Coroutine[Any, Any, T], debug: Optional[bool]) -> T:
    """Run a coroutine to its end, as ``asyncio.run`` does, and close the loop."""
    if asyncio._get_running_loop() is not None:
        main.close()
        loop.close()
        raise Error("a network runs a coroutine from outside of event loops; await it here")
    try:
        if debug is not None:
            loop.set_debug(debug)
        return loop.run_until_complete(main)
    finally:
        try:
            _cancel_tasks(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
            loop.network._native.flush()


def _cancel_tasks(loop: VirtualEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(_ended(tasks))
    for task in tasks:
        if not task.cancelled() and task.exception() is not None:
            loop.call_exception_handler(
                {"message": "a task failed while the network ended", "exception": task.exception(), "task": task}
            )


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _ps_of(when: float) -> int:
    """Return the picosecond nearest to a time, or the first whose float is not before it."""
    ps = int(when * PS_PER_S + 0.5)
    if ps / PS_PER_S >= when:
        return max(ps, 0)
    number, of = when.as_integer_ratio()
    return max(-(-number * PS_PER_S // of), 0)


def _shown_task(task: asyncio.Task[Any]) -> str:
    """Return the name of a task and the line at which it waits."""
    frames = task.get_stack(limit=1)
    if not frames:
        return task.get_name()
    frame = frames[0]
    return f"{task.get_name()} ({frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name})"


def _shown_handle(handle: events.Handle) -> str:
    callback = getattr(handle, "_callback", None)
    task = getattr(callback, "__self__", None)
    return _shown_task(task) if isinstance(task, asyncio.Task) else repr(handle)


def _unsupported(what: str, instead: str) -> Unsupported:
    return Unsupported(f"virtual time has no {what}; {instead}")


def _refuse(name: str, what: str, instead: str) -> None:
    """Let an operation of the loop raise."""

    def refused(self: VirtualEventLoop, *args: Any, **options: Any) -> NoReturn:
        raise _unsupported(f"{what} ({name})", instead)

    async def refused_later(self: VirtualEventLoop, *args: Any, **options: Any) -> NoReturn:
        refused(self, *args, **options)

    is_coroutine = inspect.iscoroutinefunction(getattr(asyncio.BaseEventLoop, name, None))
    setattr(VirtualEventLoop, name, refused_later if is_coroutine else refused)


_DATAGRAMS = "use create_datagram_endpoint, or a QUIC stack on it"
_LAB = "run the program in a lab (fastpath.Topology.lab)"
for _name in ("create_connection", "create_server", "connect_accepted_socket", "start_tls", "sendfile"):
    _refuse(_name, "TCP", _DATAGRAMS)
for _name in ("create_unix_connection", "create_unix_server"):
    _refuse(_name, "Unix sockets", _DATAGRAMS)
for _name in ("sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into", "sock_sendall",
              "sock_sendto", "sock_connect", "sock_accept", "sock_sendfile"):
    _refuse(_name, "operations on sockets", _DATAGRAMS)
for _name in ("add_reader", "remove_reader", "add_writer", "remove_writer"):
    _refuse(_name, "files and sockets of the kernel", _DATAGRAMS)
for _name in ("connect_read_pipe", "connect_write_pipe", "subprocess_exec", "subprocess_shell"):
    _refuse(_name, "processes and pipes", _LAB)
for _name in ("add_signal_handler", "remove_signal_handler"):
    _refuse(_name, "signals", "let KeyboardInterrupt end the run")
