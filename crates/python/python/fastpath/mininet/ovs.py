"""The programs ovs-ofctl and ovs-vsctl, as scripts call them on switches of a network.

Called as ``python -m fastpath.mininet.ovs STATE PROGRAM ARGUMENTS…``. What a switch here cannot do is
refused by name.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any, Optional

Switches = dict[str, dict[str, Any]]

# Settings of a bridge that are so here: OpenFlow 1.3, loops that are cut, learned addresses.
_HARMLESS = ("protocols", "stp_enable", "rstp_enable", "other-config", "other_config", "fail_mode",
             "fail-mode", "datapath_type")


class Refused(Exception):
    """A request that is not supported."""


def main() -> None:
    state, program, *arguments = sys.argv[1:]
    with open(state) as file:
        switches: Switches = json.load(file)
    run = ofctl if program == "ovs-ofctl" else vsctl
    try:
        for words in commands(arguments):
            run(switches, words)
    except Refused as refused:
        sys.exit(f"{program}: {refused}")


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


def vsctl(switches: Switches, words: list[str]) -> None:
    match = [words[0], *(word.lower() for word in words[1:2])]
    if match == ["show"]:
        for name, switch in switches.items():
            print(f"    Bridge {name}")
            for port in switch["ports"]:
                print(f"        Port {port}\n            Interface {port}")
    elif match == ["list-br"]:
        print("\n".join(switches))
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
    elif words[0] in ("del-controller", "get-fail-mode") and len(words) == 2:
        bridge(switches, words[1])
    elif words[0] == "set-fail-mode" and len(words) == 3:
        bridge(switches, words[1])
    elif match == ["set", "bridge"] and len(words) > 3:
        bridge(switches, words[2])
        odd = [word for word in words[3:] if word.split("=")[0].split(":")[0] not in _HARMLESS]
        if odd:
            raise Refused(f"{odd[0]}: fastpath's switches have no such setting")
    elif match[:1] == ["set"] and match[1:] in (["interface"], ["port"]):
        raise Refused(f"{' '.join(words)}: use the parameters of TCLink in place of settings of ports")
    else:
        raise Refused(f"{' '.join(words)}: not supported on switches of fastpath")


def ofctl(switches: Switches, words: list[str]) -> None:
    command, *rest = words
    name = rest[0] if rest else ""
    switch = bridge(switches, name)
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
