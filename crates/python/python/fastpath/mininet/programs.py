"""The programs that scripts call beside those of hosts: ovs-ofctl, ovs-vsctl, and those of the
OpenFlow reference implementation.

Called as ``python -m fastpath.mininet.programs DIRECTORY PROGRAM ARGUMENTS…``. The directory has the
switches of the network (``switches.json``) and the bridges that a script makes (``bridges.json``). What
a switch here cannot do is refused by name.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from typing import Any, Callable, Optional

from . import reference

Switches = dict[str, dict[str, Any]]

# Settings of a bridge that are so here: OpenFlow 1.3, loops that are cut, learned addresses.
_HARMLESS = ("protocols", "stp_enable", "rstp_enable", "other-config", "other_config", "fail_mode",
             "fail-mode", "datapath_type")


class Refused(Exception):
    """A request that is not supported."""


def main() -> None:
    directory, program, *arguments = sys.argv[1:]
    programs: dict[str, Callable[[], object]] = {
        "ovs-ofctl": lambda: each(directory, arguments, ofctl),
        "ovs-vsctl": lambda: each(directory, arguments, vsctl),
        "controller": lambda: reference.controller(arguments, real_program(program)),
        "ofdatapath": lambda: reference.ofdatapath(arguments),
        "ofprotocol": lambda: reference.ofprotocol(arguments),
        "vconfig": lambda: reference.vconfig(arguments),
    }
    try:
        programs[program]()
    except (Refused, reference.Refused) as refused:
        sys.exit(f"{program}: {refused}")


def each(directory: str, arguments: list[str], run: Callable[[Network, list[str]], None]) -> None:
    """Run each command of a line, and keep the bridges that they change."""
    with open(os.path.join(directory, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        network = Network(directory)
        before = json.dumps(network.bridges)
        try:
            for words in commands(arguments):
                run(network, words)
        finally:
            if json.dumps(network.bridges) != before:
                network.write()


class Network:
    """The switches of the network, and the bridges that scripts have made of ports of nodes."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, "bridges.json")
        self.switches: Switches = _read(os.path.join(directory, "switches.json"))
        self.bridges: Switches = _read(self._path)

    def write(self) -> None:
        with open(self._path + ".new", "w") as file:
            json.dump(self.bridges, file)
        os.replace(self._path + ".new", self._path)

    def all(self) -> Switches:
        return {**self.bridges, **self.switches}


def _read(path: str) -> Switches:
    try:
        with open(path) as file:
            found: Switches = json.load(file)
            return found
    except FileNotFoundError:
        return {}


def commands(arguments: list[str]) -> list[list[str]]:
    """Split at ``--`` and leave options out."""
    found: list[list[str]] = [[]]
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word == "--":
            found.append([])
        elif word in ("-O", "-t", "-T"):
            skip = True
        elif word.startswith("-") and len(word) > 1:
            continue
        else:
            found[-1].append(word)
    return [words for words in found if words]


def bridge(switches: Switches, name: str) -> dict[str, Any]:
    if name not in switches:
        raise Refused(f"no bridge named {name} (have: {', '.join(switches)})")
    return switches[name]


def vsctl(network: Network, words: list[str]) -> None:
    match = [words[0], *(word.lower() for word in words[1:2])]
    switches = network.all()
    if match == ["show"]:
        show(switches)
    elif match == ["list-br"]:
        print("\n".join(switches))
    elif words[0] in _CHANGES:
        _CHANGES[words[0]](network, words[1:])
    elif words[0] == "br-exists" and len(words) == 2:
        sys.exit(0 if words[1] in switches else 2)
    elif words[0] in ("list-ports", "list-ifaces") and len(words) == 2:
        print("\n".join(bridge(switches, words[1])["ports"]))
    elif words[0] == "port-to-br" and len(words) == 2:
        found = [name for name, switch in switches.items() if words[1] in switch["ports"]]
        if not found:
            raise Refused(f"no port named {words[1]}")
        print(found[0])
    elif match == ["get", "interface"] and words[3:] == ["ofport"]:
        ports = {port: number for switch in switches.values() for port, number in switch["ports"].items()}
        if words[2] not in ports:
            raise Refused(f"no row \"{words[2]}\" in table Interface")
        print(ports[words[2]])
    elif match == ["get", "bridge"] and words[3:] in (["datapath_id"], ["datapath-id"]):
        print(f'"{bridge(switches, words[2])["dpid"]}"')
    elif words[0] == "get-controller" and len(words) == 2:
        print("\n".join(bridge(switches, words[1])["controllers"]))
    elif words[0] == "get-fail-mode" and len(words) == 2:
        bridge(switches, words[1])
    elif words[0] == "set-fail-mode" and len(words) == 3:
        bridge(switches, words[1])
    elif match == ["set", "bridge"] and len(words) > 3:
        bridge(switches, words[2])
        odd = [word for word in words[3:] if word.split("=")[0].split(":")[0] not in _HARMLESS]
        if odd:
            raise Refused(f"{odd[0]}: fastpath's switches have no such setting")
    elif match == ["set", "interface"] and is_number_of(switches, words[2:]):
        return
    elif match[:1] == ["set"] and match[1:] in (["interface"], ["port"]):
        raise Refused(f"{' '.join(words)}: use the parameters of TCLink in place of settings of ports")
    else:
        raise Refused(f"{' '.join(words)}: not supported on switches of fastpath")


def is_number_of(switches: Switches, words: list[str]) -> bool:
    """Return whether the words ask for the number that a port has: `s1-eth1 ofport_request=1`."""
    ports = {port: number for switch in switches.values() for port, number in switch["ports"].items()}
    return len(words) == 2 and words[1] == f"ofport_request={ports.get(words[0])}"


def show(switches: Switches) -> None:
    for name, switch in switches.items():
        print(f"    Bridge {name}")
        for target in switch["controllers"]:
            print(f'        Controller "{target}"')
            if is_connected(target):
                print("            is_connected: true")
        for port in switch["ports"]:
            print(f"        Port {port}\n            Interface {port}")


def is_connected(target: str) -> bool:
    """Return whether this machine has a connection to a controller (tcp:ADDRESS:PORT)."""
    _, _, address = target.partition(":")
    words = ["ss", "-Htn", "state", "established", "dst", address]
    found = subprocess.run(words, capture_output=True, check=False)
    return bool(found.stdout.strip())


def add_bridge(network: Network, words: list[str]) -> None:
    if len(words) != 1 or words[0] in network.all():
        raise Refused(f"add-br {' '.join(words)}: write the name of a new bridge")
    network.bridges[words[0]] = {"dpid": "0" * 16, "ports": {}, "listen": None, "controllers": []}


def delete_bridge(network: Network, words: list[str]) -> None:
    if len(words) != 1 or words[0] in network.switches:
        raise Refused(f"del-br {' '.join(words)}: the switches of the network end with it")
    network.bridges.pop(words[0], None)


def add_port(network: Network, words: list[str]) -> None:
    name, port = words[:2] if len(words) > 1 else ("", "")
    ports = bridge(network.all(), name)["ports"]
    if port in ports:
        return
    if name in network.switches:
        raise Refused(f"add-port {name} {port}: connect it to {name} by a link in place of that")
    ports[port] = 1 + max(ports.values(), default=0)


def delete_port(network: Network, words: list[str]) -> None:
    for switch in network.bridges.values():
        switch["ports"].pop(words[-1] if words else "", None)


def set_controller(network: Network, words: list[str]) -> None:
    name, targets = (words[0], words[1:]) if words else ("", [])
    switch = bridge(network.all(), name)
    targets = [with_port(target) for target in targets]
    if name in network.switches and targets != switch["controllers"]:
        raise Refused(f"set-controller {name}: give the network a RemoteController in place of that")
    switch["controllers"] = targets


def delete_controller(network: Network, words: list[str]) -> None:
    name = words[0] if words else ""
    switch = bridge(network.all(), name)
    if name in network.bridges:
        switch["controllers"] = []


def with_port(target: str) -> str:
    """Return an address of a controller with its port: tcp:127.0.0.1 has 6653."""
    return target if target.count(":") == 2 else f"{target}:6653"


_CHANGES: dict[str, Callable[[Network, list[str]], None]] = {
    "add-br": add_bridge,
    "del-br": delete_bridge,
    "add-port": add_port,
    "del-port": delete_port,
    "set-controller": set_controller,
    "del-controller": delete_controller,
}


def ofctl(network: Network, words: list[str]) -> None:
    command, *rest = words
    name = rest[0] if rest else ""
    switch = bridge(network.all(), name)
    if switch["listen"] and command not in ("show", "snoop"):
        real = real_program("ovs-ofctl")
        if real is None:
            raise Refused(f"{command}: install ovs-ofctl (openvswitch-common) to change rules of {name}")
        where = f"tcp:127.0.0.1:{switch['listen']}"
        sys.exit(subprocess.run([real, "-O", "OpenFlow13", command, where, *rest[1:]], check=False).returncode)
    if command == "show":
        print(f"OFPT_FEATURES_REPLY (OF1.3) (xid=0x2): dpid:{switch['dpid']}")
        for port, number in switch["ports"].items():
            print(f" {number}({port}): state: LIVE")
    elif command == "dump-flows" and not rest[1:]:
        print(" cookie=0x0, table=0, priority=0 actions=NORMAL")
    elif command in ("add-flow", "mod-flows") and is_normal(rest[1:]):
        return
    elif command == "del-flows" and not rest[1:]:
        # There is no flow; learned addresses follow the next frames.
        return
    elif command in ("add-flow", "add-flows", "mod-flows", "replace-flows", "del-flows"):
        raise Refused(
            f"{command}: {name} learns addresses for its controller and takes no rules; make the network with "
            "controller=None, or with a RemoteController that adds them"
        )
    else:
        raise Refused(f"{command}: not supported on switches of fastpath")


def real_program(name: str) -> Optional[str]:
    """Return the program of the machine behind ours on the path."""
    directories = os.environ.get("PATH", "").split(os.pathsep)
    others = [path for path in directories if not os.path.exists(os.path.join(path, "switches.json"))]
    return shutil.which(name, path=os.pathsep.join(others))


def is_normal(words: list[str]) -> bool:
    """Return whether a rule is what the switch does anyway."""
    rule = " ".join(words).replace(" ", "").lower()
    parts = [part for part in rule.split(",") if not part.startswith(("priority=", "table=0"))]
    return parts in (["actions=normal"], ["action=normal"])


if __name__ == "__main__":
    main()
