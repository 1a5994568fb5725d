"""Names and addresses of hosts, as the resolver of an operating system gives them."""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Any, Optional, Union

if TYPE_CHECKING:
    from ._network import VirtualNetwork

__all__ = ["Info", "resolve", "resolve_one", "unmapped"]

Info = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


def resolve(
    network: VirtualNetwork,
    host: Union[str, bytes, None],
    port: Union[str, bytes, int, None],
    *,
    family: int = 0,
    kind: int = 0,
    flags: int = 0,
) -> list[Info]:
    """Return the addresses of a host of the topology, IPv4 before IPv6.

    An address is its own name. No host (``None``, ``""``) is every address of the one that asks.

    Raises
    ------
    socket.gaierror
        The topology has no such host, or the host no address of the family.
    """
    name = host.decode() if isinstance(host, bytes) else host
    number = _port(port)
    found = [_info(address, number, kind, family, flags) for address in _addresses(network, name)]
    infos = [info for info in found if info is not None]
    if not infos:
        raise socket.gaierror(socket.EAI_NONAME, f"host {name} has no address of family {family}")
    return infos


def resolve_one(network: VirtualNetwork, address: tuple[Any, ...], family: int) -> tuple[Any, ...]:
    """Return the first address of a pair of name and port, in the form of a family."""
    flags = socket.AI_V4MAPPED if family == socket.AF_INET6 else 0
    return resolve(network, address[0], address[1], family=family, flags=flags)[0][4]


def unmapped(address: str) -> str:
    """Return an address in its shortest form; one of IPv4 that is mapped to IPv6 as IPv4."""
    read = ipaddress.ip_address(address.partition("%")[0])
    mapped = read.ipv4_mapped if isinstance(read, ipaddress.IPv6Address) else None
    return str(mapped or read)


def _addresses(network: VirtualNetwork, name: Optional[str]) -> list[str]:
    if not name:
        return ["0.0.0.0", "::"]
    host = network._host_named(name)
    if host is not None:
        return network.hosts[host]
    try:
        plain = unmapped(name)
    except ValueError:
        have = ", ".join([*network.hosts, *network.names])
        text = f"no host {name} in the network (have: {have}); write names={{{name!r}: HOST}} for another name"
        raise socket.gaierror(socket.EAI_NONAME, text) from None
    return [f"::ffff:{plain}" if ":" in name and ":" not in plain else plain]


def _info(address: str, port: int, kind: int, family: int, flags: int) -> Optional[Info]:
    own = socket.AF_INET6 if ":" in address else socket.AF_INET
    if family == socket.AF_INET6 and own == socket.AF_INET and flags & socket.AI_V4MAPPED:
        own, address = socket.AF_INET6, f"::ffff:{address}"
    if family not in (0, own):
        return None
    where = (address, port, 0, 0) if own == socket.AF_INET6 else (address, port)
    kind = socket.SOCK_DGRAM if kind == 0 else kind
    protocol = socket.IPPROTO_UDP if kind == socket.SOCK_DGRAM else socket.IPPROTO_TCP
    return own, socket.SocketKind(kind), protocol, "", where


def _port(port: Union[str, bytes, int, None]) -> int:
    if port is None:
        return 0
    try:
        number = int(port)
    except ValueError:
        text = f"{port!r} is not a number of a port; services have no names in virtual time"
        raise socket.gaierror(socket.EAI_SERVICE, text) from None
    if not 0 <= number <= 65535:
        raise OverflowError(f"port {number} is out of range; write 0 to 65535")
    return number
