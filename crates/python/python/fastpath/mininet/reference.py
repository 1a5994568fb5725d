"""Programs of the OpenFlow reference implementation and of the package vlan, as scripts call them.

``controller`` makes switches learn addresses: it gives each the flow ``actions=NORMAL``. ``ofdatapath``
is ``fastpath switch`` between interfaces, and ``ofprotocol`` joins it to a controller. ``vconfig`` asks
the kernel for a VLAN interface; where the kernel has none, ``fastpath switch`` makes one of a TAP.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
from typing import Optional

from fastpath.program import program

# OpenFlow 1.3.5, §7: the version, and types of messages.
_VERSION = 4
_HELLO, _ECHO_REQUEST, _ECHO_REPLY, _FLOW_MOD = 0, 2, 3, 14
_HEADER = struct.Struct(">BBHI")
_PORT = 6633
_NORMAL = 0xFFFF_FFFA
_START_S = 10.0
_TRIES, _TRY_EVERY_S = 1200, 0.05


class Refused(Exception):
    """A request that is not supported."""


def controller(arguments: list[str], real: Optional[str]) -> None:
    """Serve switches at ``ptcp:[PORT]``, by the program of the machine if there is one."""
    if real is not None:
        os.execv(real, ["controller", *arguments])
    targets = [word for word in arguments if word.startswith("ptcp:")]
    if not targets:
        raise Refused(f"{' '.join(arguments)}: write ptcp:PORT")
    with socket.create_server(_listening(targets[0], "0.0.0.0")) as server, selectors.DefaultSelector() as chosen:
        chosen.register(server, selectors.EVENT_READ)
        pending: dict[socket.socket, bytes] = {}
        while True:
            for key, _ in chosen.select():
                peer = key.fileobj
                if peer is server:
                    switch, _ = server.accept()
                    chosen.register(switch, selectors.EVENT_READ)
                    pending[switch] = b""
                    switch.sendall(_message(_HELLO))
                    continue
                assert isinstance(peer, socket.socket)
                try:
                    data = peer.recv(65536)
                    pending[peer] = _answer(peer, pending[peer] + data)
                except OSError:
                    data = b""
                if not data:
                    chosen.unregister(peer)
                    del pending[peer]
                    peer.close()


def _answer(switch: socket.socket, received: bytes) -> bytes:
    """Answer the complete messages of a switch. Returns what is left."""
    while len(received) >= _HEADER.size:
        _, kind, length, xid = _HEADER.unpack_from(received)
        if length < _HEADER.size:
            raise OSError("not OpenFlow")
        if len(received) < length:
            break
        if kind == _HELLO:
            switch.sendall(_normal_flow())
        elif kind == _ECHO_REQUEST:
            switch.sendall(_message(_ECHO_REPLY, received[_HEADER.size : length], xid))
        received = received[length:]
    return received


def _message(kind: int, body: bytes = b"", xid: int = 0) -> bytes:
    return _HEADER.pack(_VERSION, kind, _HEADER.size + len(body), xid) + body


def _normal_flow() -> bytes:
    """Return a request to add the flow ``priority=0,actions=NORMAL`` (§7.3.4.1)."""
    head = struct.pack(">QQBBHHHIIIHxx", 0, 0, 0, 0, 0, 0, 0, 0xFFFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFF, 0)
    match = struct.pack(">HHxxxx", 1, 4)
    output = struct.pack(">HHIHxxxxxx", 0, 16, _NORMAL, 0)
    apply = struct.pack(">HHxxxx", 4, 8 + len(output)) + output
    return _message(_FLOW_MOD, head + match + apply)


def ofdatapath(arguments: list[str]) -> None:
    """Switch between interfaces: ``-i eth1,eth2 ptcp:[PORT[:ADDRESS]]``."""
    if len(arguments) < 3 or arguments[0] not in ("-i", "--interfaces") or not arguments[2].startswith("ptcp:"):
        raise Refused(f"{' '.join(arguments)}: write -i IFACE,IFACE ptcp:PORT")
    address, port = _listening(arguments[2], "127.0.0.1")
    ports = [word for n, name in enumerate(arguments[1].split(","), 1) for word in ("--port", f"p{n}={name}")]
    os.execv(program(), ["fastpath", "switch", *ports, "--listen", f"ptcp:{port}:{address}"])


def ofprotocol(arguments: list[str]) -> None:
    """Pass OpenFlow between a datapath and a controller: ``tcp:ADDRESS[:PORT] tcp:ADDRESS[:PORT]``."""
    targets = [word for word in arguments if word.startswith("tcp:")]
    if len(targets) != 2:
        raise Refused(f"{' '.join(arguments)}: write tcp:DATAPATH tcp:CONTROLLER")
    ends = [_connect(target) for target in targets]
    other = dict(zip(ends, reversed(ends)))
    while True:
        for end in select.select(ends, [], [])[0]:
            data = end.recv(65536)
            if not data:
                return
            other[end].sendall(data)


def _connect(target: str) -> socket.socket:
    """Connect to ``tcp:ADDRESS[:PORT]``; whoever listens there may start later."""
    _, address, *rest = target.split(":")
    there = (address, int(rest[0]) if rest else _PORT)
    for _ in range(_TRIES):
        try:
            return socket.create_connection(there, timeout=None)
        except ConnectionRefusedError:
            select.select([], [], [], _TRY_EVERY_S)
    raise Refused(f"{target}: nothing listens there")


def _listening(target: str, default: str) -> tuple[str, int]:
    _, port, *rest = target.split(":")
    return (rest[0] if rest else default, int(port) if port else _PORT)


def vconfig(arguments: list[str]) -> None:
    """Add or remove a VLAN interface: ``add IFACE VLAN``, ``rem IFACE.VLAN``."""
    if arguments[:1] == ["rem"] and len(arguments) == 2:
        subprocess.run(["ip", "link", "del", arguments[1]], check=False)
        return
    if arguments[:1] != ["add"] or len(arguments) != 3 or not arguments[2].isdigit():
        raise Refused(f"{' '.join(arguments)}: write add IFACE VLAN, or rem IFACE.VLAN")
    interface, vlan = arguments[1], int(arguments[2])
    if not 1 <= vlan <= 4094:
        raise Refused(f"VLAN {vlan}: write 1 to 4094")
    name = f"{interface}.{vlan}"
    words = ["ip", "link", "add", "link", interface, "name", name, "type", "vlan", "id", str(vlan)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    if not any(said in done.stderr for said in ("Unknown device type", "not supported")):
        raise Refused(done.stderr.strip())
    _vlan_of_tap(interface, name, vlan)


def _vlan_of_tap(interface: str, name: str, vlan: int) -> None:
    """Start a switch that adds and removes the tag, and wait until it forwards."""
    with open(f"/sys/class/net/{interface}/address") as file:
        address = file.read().strip()
    with tempfile.TemporaryDirectory(prefix="fastpath-vlan-") as directory:
        rules = os.path.join(directory, "rules")
        with open(rules, "w") as out:
            out.write(f"in_port=1,dl_vlan={vlan},actions=pop_vlan,output:2\n")
            out.write(f"in_port=2,actions=push_vlan:0x8100,set_field:{0x1000 | vlan}->vlan_vid,output:1\n")
        ports = ["--port", f"p1={interface}", "--port", f"p2=tap:{name}"]
        log = os.path.join(directory, "log")
        with open(log, "w+") as out:
            switch = subprocess.Popen(
                [program(), "switch", *ports, "--rules", rules],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out, start_new_session=True,
            )
            assert switch.stdout is not None
            ready, _, _ = select.select([switch.stdout], [], [], _START_S)
            said = b""
            while ready and b"switching" not in said:
                line = switch.stdout.readline()
                if not line:
                    break
                said = line
            if b"switching" not in said:
                switch.kill()
                out.seek(0)
                raise Refused(f"{name}: {out.read().strip() or 'the switch did not start'}")
    subprocess.run(["ip", "link", "set", name, "address", address], check=False, stderr=sys.stderr)
