"""ovs-ofctl: the flow tables of the switches, read and changed by OpenFlow."""

from __future__ import annotations

import ctypes
import os
import re
import socket
import sys
from typing import Any

from .. import _native
from .network import Network, Refused, Wrong
from .remarks import owner

# The commands, with the most arguments after the switch, and whether the argument is a file.
_COMMANDS = {
    "add-flow": (1, False), "mod-flows": (1, False), "del-flows": (1, False), "dump-flows": (1, False),
    "dump-aggregate": (1, False), "add-flows": (1, True), "replace-flows": (1, True),
    "add-group": (1, False), "add-groups": (1, True), "mod-group": (1, False), "del-groups": (1, False),
    "dump-groups": (0, False), "add-meter": (1, False), "mod-meter": (1, False), "del-meter": (1, False),
    "del-meters": (0, False), "dump-meters": (1, False), "dump-ports": (1, False), "show": (0, False),
    "dump-ports-desc": (0, False), "mod-port": (2, False),
}
_NEED_ONE = ("add-flow", "mod-flows", "add-flows", "replace-flows", "add-group", "add-groups", "mod-group",
             "add-meter", "mod-meter")
# The entry of a controller that makes a switch learn addresses.
_NORMAL = "priority=0,actions=NORMAL"
_ANSWER_S = 60.0
_CLONE_NEWNET = 0x40000000


def ofctl(network: Network, options: list[str], words: list[str]) -> None:
    """Run one command of ovs-ofctl."""
    command, *rest = words
    if command not in _COMMANDS:
        raise Refused(f"{command}: not supported on switches of fastpath")
    most, is_file = _COMMANDS[command]
    if not rest:
        raise Wrong(f"'{command}' command requires at least 1 arguments")
    if len(rest) > most + 1:
        raise Wrong(f"'{command}' command takes at most {most + 1} arguments")
    if command in _NEED_ONE and len(rest) < 2:
        raise Wrong(f"'{command}' command requires at least 2 arguments")
    name = _name(network, rest[0])
    switch = network.bridge(name)
    if command in ("show", "dump-ports-desc"):
        _show(switch, command)
        return
    if command == "mod-port":
        _mod_port(network, name, rest[1:])
        return
    lines = rest[1] if rest[1:] else ""
    if is_file:
        lines = _file(lines)
    if command == "mod-flows":
        # OpenFlow 1.3.5, §6.4: a modification changes actions; priority selects if it is strict.
        unused = ["idle_timeout", "hard_timeout", *([] if "--strict" in options else ["priority"])]
        for key in unused:
            if re.search(rf"\b{key}=", lines.partition("action")[0]):
                network.warn(f"mod-flows {name}: {key} has no effect on flows that exist"
                             + ("; write --strict" if key == "priority" else ""))
    if command == "del-flows" and not lines and not switch["listen"] and switch.get("is_taught"):
        # It has no flows but those of its controller, which teaches it again.
        return
    text = run(network, name, command, lines, "--strict" in options)
    if "--no-stats" in options:
        text = re.sub(r"duration=[^ ]*, |n_packets=\d+, |n_bytes=\d+, ", "", text)
    print(text, end="")
    if command in ("del-flows", "replace-flows") and switch.get("is_taught"):
        # The controller of a learning switch goes on teaching it.
        flows = run(network, name, "dump-flows", "table=0", False)
        if not re.search(r", priority=0 actions=", flows):
            run(network, name, "add-flow", _NORMAL, False)


def run(network: Network, name: str, command: str, lines: str, strict: bool) -> str:
    """Send a command to a switch. Returns what it shows."""
    switch = network.bridge(name)
    if not switch["listen"]:
        raise Refused(f"{command}: {switch.get('why') or name + ' takes no flows'}")
    try:
        messages = _native.ofctl_requests(command, strict, lines, network.ports_of(name))
    except _native.Error as error:
        raise Refused(f"{command} {name}: {error}") from None
    text, refused = _ask(network.directory, name, switch["listen"], messages)
    if refused:
        given = lines.splitlines() or [""]
        line, why = refused[0]
        raise Refused(f"{command} {name}: {given[min(max(line, 1), len(given)) - 1]!r}: {why}")
    return text


def _ask(directory: str, name: str, port: int, messages: bytes) -> tuple[str, list[tuple[int, str]]]:
    _join_machine(directory)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S) as connection:
            connection.sendall(messages)
            received = bytearray()
            while True:
                data = connection.recv(1 << 20)
                if not data:
                    raise Refused(f"{name}: the switch has closed the connection")
                received += data
                found = _native.ofctl_answers(bytes(received))
                if found is not None:
                    return found
    except ConnectionRefusedError:
        raise Wrong(f"{name} is not a bridge or a socket: the network has not started") from None
    except OSError as error:
        raise Refused(f"{name}: {error}") from None


def _join_machine(directory: str) -> None:
    """Join the network namespace of the script: a host has one of its own."""
    pid, _ = owner(directory)
    theirs = f"/proc/{pid}/ns/net"
    try:
        if pid is None or os.stat(theirs).st_ino == os.stat("/proc/self/ns/net").st_ino:
            return
        with open(theirs) as file:
            ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET)
    except OSError:
        # The connection is refused below.
        return


def _mod_port(network: Network, name: str, words: list[str]) -> None:
    """Take a port up or down, by its name or number."""
    if len(words) != 2:
        raise Wrong("'mod-port' command requires at least 3 arguments")
    ports = network.ports_of(name)
    found = [port for port, number in ports.items() if words[0] in (port, str(number))]
    if not found:
        raise Wrong(f"{name}: couldn't find port `{words[0]}'")
    if words[1] not in ("up", "down"):
        raise Refused(f"mod-port {name} {' '.join(words)}: ports of fastpath's switches go up or down only")
    network.set_link(found[0], words[1])


def _name(network: Network, target: str) -> str:
    """Return the switch that an argument means: a name, a management socket, or an address."""
    name = re.sub(r"^(unix:)?(.*/)?([^/]+)\.mgmt$", r"\3", target)
    name = name.rpartition("@")[2]
    if target.startswith(("tcp:", "ssl:")):
        port = target.rpartition(":")[2]
        found = [name for name, switch in network.all().items() if str(switch.get("listen_port")) == port]
        if not found:
            raise Refused(f"{target}: write the name of the switch in place of its address")
        return found[0]
    return name


def _file(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        raise Wrong(f"{path}: {error.strerror}") from None


def _show(switch: dict[str, Any], command: str) -> None:
    if command == "show":
        print(f"OFPT_FEATURES_REPLY (OF1.3) (xid=0x2): dpid:{switch['dpid']}")
    for port, number in switch["ports"].items():
        print(f" {number}({port}): state: LIVE")
