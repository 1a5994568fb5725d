"""ovs-vsctl: the switches of the network, and the bridges that a script makes of ports of nodes.

What a switch of fastpath cannot do (mirrors, QoS, VLANs of ports, other tables of the database) is refused
by name.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Callable

from .network import Network, Refused, Wrong, free_port
from .ofctl import run

# Settings without an effect here: connections to controllers are made and kept by the engine.
_NO_EFFECT = ("datapath_type", "disable-in-band", "connection-mode", "connection_mode", "inactivity_probe",
              "max_backoff")
_VERSIONS = ("OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15")


def vsctl(network: Network, options: list[str], words: list[str]) -> None:
    """Run one command of ovs-vsctl."""
    command, *rest = words
    if command in _SHOWN:
        _SHOWN[command](network, rest)
    elif command in _CHANGES:
        _CHANGES[command](network, options, rest)
    else:
        raise Refused(f"{' '.join([*options, *words])}: not supported on switches of fastpath")


def _exactly(words: list[str], count: int, form: str) -> list[str]:
    if len(words) != count:
        raise Wrong(f"'{form}' takes {count} arguments, not {len(words)}")
    return words


def show(network: Network, words: list[str]) -> None:
    _exactly(words, 0, "show")
    for name, switch in network.all().items():
        print(f"    Bridge {name}")
        for target in switch["controllers"]:
            print(f'        Controller "{target}"')
            if is_connected(target):
                print("            is_connected: true")
        if switch.get("fail_mode"):
            print(f"        fail_mode: {switch['fail_mode']}")
        for port in switch["ports"]:
            print(f"        Port {port}\n            Interface {port}")


def is_connected(target: str) -> bool:
    """Return whether this machine has a connection to a controller (tcp:ADDRESS:PORT)."""
    _, _, address = target.partition(":")
    words = ["ss", "-Htn", "state", "established", "dst", address]
    found = subprocess.run(words, capture_output=True, check=False)
    return bool(found.stdout.strip())


def br_exists(network: Network, words: list[str]) -> None:
    sys.exit(0 if _exactly(words, 1, "br-exists BRIDGE")[0] in network.all() else 2)


def list_ports(network: Network, words: list[str]) -> None:
    print("\n".join(network.bridge(_exactly(words, 1, "list-ports BRIDGE")[0])["ports"]))


def get(network: Network, options: list[str], words: list[str]) -> None:
    """Print a column: the number of a port, or the datapath id of a bridge."""
    table = words[0].lower() if words else ""
    name, columns = (words[1], words[2:]) if len(words) > 2 else ("", [])
    rows = {"interface": network.ports(), "port": network.ports(), "bridge": network.all()}
    if "--if-exists" in options and table in rows and name not in rows[table]:
        return
    if table == "interface" and columns == ["ofport"]:
        if name not in network.ports():
            raise Wrong(f'no row "{name}" in table Interface')
        print(network.ports()[name])
    elif table == "bridge" and columns in (["datapath_id"], ["datapath-id"]):
        print(f'"{network.bridge(name)["dpid"]}"')
    elif table == "bridge" and columns in (["fail_mode"], ["fail-mode"]):
        print(network.bridge(name).get("fail_mode") or "[]")
    else:
        raise Refused(f"get {' '.join(words)}: switches of fastpath have no such column")


def get_controller(network: Network, words: list[str]) -> None:
    print("\n".join(network.bridge(_exactly(words, 1, "get-controller BRIDGE")[0])["controllers"]))


def get_fail_mode(network: Network, words: list[str]) -> None:
    mode = network.bridge(_exactly(words, 1, "get-fail-mode BRIDGE")[0]).get("fail_mode")
    if mode:
        print(mode)


_SHOWN: dict[str, Callable[[Network, list[str]], None]] = {
    "show": show,
    "list-br": lambda network, _words: print("\n".join(network.all())),
    "br-exists": br_exists,
    "list-ports": list_ports,
    "list-ifaces": list_ports,
    "port-to-br": lambda network, words: print(network.bridge_of(_exactly(words, 1, "port-to-br PORT")[0])),
    "iface-to-br": lambda network, words: print(network.bridge_of(_exactly(words, 1, "iface-to-br IFACE")[0])),
    "get-controller": get_controller,
    "get-fail-mode": get_fail_mode,
}


def add_bridge(network: Network, options: list[str], words: list[str]) -> None:
    if len(words) == 3:
        raise Refused(f"add-br {' '.join(words)}: switches of fastpath have no bridges for VLANs")
    name = _exactly(words, 1, "add-br BRIDGE")[0]
    if name in network.all():
        if "--may-exist" in options:
            return
        raise Wrong(f"cannot create a bridge named {name} because a bridge named {name} already exists")
    network.bridges[name] = {"dpid": "0" * 16, "ports": {}, "listen": None, "controllers": [],
                             "why": f"{name} takes no flows before it has a controller or fail mode secure"}


def delete_bridge(network: Network, options: list[str], words: list[str]) -> None:
    name = _exactly(words, 1, "del-br BRIDGE")[0]
    if name in network.switches:
        raise Refused(f"del-br {name}: the switches of the network end with it")
    if name not in network.bridges and "--if-exists" not in options:
        raise Wrong(f"no bridge named {name}")
    network.bridges.pop(name, None)


def add_port(network: Network, options: list[str], words: list[str]) -> None:
    if len(words) < 2:
        raise Wrong("'add-port' command requires at least 2 arguments")
    name, port, *columns = words
    ports = network.ports_of(name)
    if columns:
        raise Refused(f"add-port {' '.join(words)}: ports of fastpath's switches have no setting {columns[0]!r}")
    if port in ports:
        if "--may-exist" not in options and name in network.bridges:
            raise Wrong(f"cannot create a port named {port} because a port named {port} already exists on "
                        f"bridge {name}")
        return
    others = [other for other, switch in network.all().items() if port in switch["ports"]]
    if others and "--may-exist" in options:
        raise Wrong(f'"--may-exist add-port {name} {port}" but {port} is actually attached to bridge {others[0]}')
    if others:
        raise Wrong(f"cannot create a port named {port} because a port named {port} already exists on "
                    f"bridge {others[0]}")
    if name in network.switches:
        raise Refused(f"add-port {name} {port}: connect it to {name} by a link in place of that")
    ports[port] = 1 + max(ports.values(), default=0)


def delete_port(network: Network, options: list[str], words: list[str]) -> None:
    if len(words) not in (1, 2):
        raise Wrong(f"'del-port' takes 1 or 2 arguments, not {len(words)}")
    port = words[-1]
    found = [name for name, switch in network.all().items()
             if port in switch["ports"] and (len(words) == 1 or name == words[0])]
    if len(words) == 2:
        network.bridge(words[0])
    if not found:
        if "--if-exists" in options:
            return
        raise Wrong(f"no port named {port}")
    if found[0] in network.switches:
        raise Refused(f"del-port {' '.join(words)}: take its link down by net.configLinkStatus in place of that")
    network.bridges[found[0]]["ports"].pop(port)


def set_controller(network: Network, _options: list[str], words: list[str]) -> None:
    if len(words) < 2:
        raise Wrong("'set-controller' command requires at least 2 arguments")
    name, targets = words[0], [with_port(target) for target in words[1:]]
    switch = network.bridge(name)
    if name in network.switches and targets != switch["controllers"]:
        raise Refused(f"set-controller {' '.join(words)}: give the network a RemoteController in place of that")
    network.change(name, controllers=targets)
    _listen(network, name)


def delete_controller(network: Network, _options: list[str], words: list[str]) -> None:
    """Forget the controllers; as in Open vSwitch, what they have added goes with them."""
    name = _exactly(words, 1, "del-controller BRIDGE")[0]
    switch = network.bridge(name)
    if not switch["controllers"]:
        return
    if name in network.switches:
        if switch.get("dials"):
            raise Refused(f"del-controller {name}: give the network controller=None in place of that")
        _without_controller(network, name, switch.get("fail_mode"))
    network.change(name, controllers=[], is_taught=False)


def _without_controller(network: Network, name: str, mode: Any) -> None:
    """Make the table that of a switch that has no controller."""
    run(network, name, "del-flows", "", False)
    if mode == "standalone":
        run(network, name, "add-flow", "priority=0,actions=NORMAL", False)


def set_fail_mode(network: Network, _options: list[str], words: list[str]) -> None:
    name, mode = _exactly(words, 2, "set-fail-mode BRIDGE MODE")
    switch = network.bridge(name)
    if mode not in ("standalone", "secure"):
        raise Wrong(f"fail-mode must be \"standalone\" or \"secure\", not {mode}")
    if mode == switch.get("fail_mode"):
        return
    if switch.get("dials"):
        raise Refused(f"set-fail-mode {name} {mode}: give its OVSSwitch failMode='{mode}' in place of that")
    if name in network.switches and not switch["controllers"]:
        _without_controller(network, name, mode)
    network.change(name, fail_mode=mode)
    _listen(network, name)


def _listen(network: Network, name: str) -> None:
    """Let a bridge of a script take flows."""
    if name in network.bridges and network.bridges[name]["listen"] is None:
        network.change(name, listen=free_port())


def set_columns(network: Network, options: list[str], words: list[str]) -> None:
    """Set columns of a bridge, a port or a controller."""
    if len(words) < 3:
        raise Wrong("'set' command requires at least 3 arguments")
    table, name, columns = words[0].lower(), words[1], words[2:]
    if table == "bridge":
        network.bridge(name)
        for column in columns:
            _set_bridge(network, name, column)
    elif table == "interface" and columns == [f"ofport_request={network.ports().get(name)}"]:
        # It is the number that the port has.
        return
    elif table in ("interface", "port"):
        raise Refused(f"set {' '.join(words)}: use the parameters of TCLink in place of settings of ports")
    elif table == "controller" and all(_key(column) in _NO_EFFECT for column in columns):
        network.warn(f"set {' '.join(words)}: has no effect on switches of fastpath")
    else:
        raise Refused(f"set {' '.join(words)}: switches of fastpath have no such setting")


def _key(column: str) -> str:
    """Return the setting that a column names: `other-config:KEY=VALUE` names KEY."""
    name = column.partition("=")[0]
    return name.partition(":")[2] or name


def _set_bridge(network: Network, name: str, column: str) -> None:
    key, value = _key(column), column.partition("=")[2].strip('"')
    switch = network.bridge(name)
    if key in ("fail_mode", "fail-mode"):
        set_fail_mode(network, [], [name, value])
    elif key == "protocols":
        _protocols(network, name, value)
    elif key in ("stp_enable", "rstp_enable") and value in ("true", "false"):
        _spanning_tree(network, name, column, value)
    elif key in ("datapath-id", "datapath_id"):
        if value.replace(":", "").lstrip("0") != switch["dpid"].lstrip("0"):
            raise Refused(f"set bridge {name} {column}: give the switch dpid='{value}' in place of that")
    elif key in _NO_EFFECT:
        network.warn(f"set bridge {name} {column}: has no effect on switches of fastpath")
    else:
        raise Refused(f"set bridge {name} {column}: fastpath's switches have no such setting")


def _protocols(network: Network, name: str, value: str) -> None:
    versions = value.strip("[]").replace(" ", "").split(",")
    odd = [version for version in versions if version not in _VERSIONS]
    if odd:
        raise Wrong(f"{odd[0]} is not one of the allowed values ({', '.join(_VERSIONS)})")
    if "OpenFlow13" not in versions:
        network.warn(f"set bridge {name} protocols={value}: {name} speaks OpenFlow 1.3")


def _spanning_tree(network: Network, name: str, column: str, value: str) -> None:
    """Loops of learning switches are always cut, loops of flow tables never."""
    in_ring = network.bridge(name).get("in_ring")
    has_table = bool(network.bridge(name)["listen"])
    if in_ring and has_table and value == "true":
        raise Refused(f"set bridge {name} {column}: loops of switches with flow tables are not cut")
    if in_ring and not has_table and value == "false":
        network.warn(f"set bridge {name} {column}: loops of learning switches are always cut")


# Columns and tables of which fastpath has nothing: there is nothing to clear or destroy.
_EMPTY = ("mirrors", "qos", "tag", "trunks", "vlan_mode", "netflow", "sflow", "ipfix")
_EMPTY_TABLES = ("mirror", "qos", "queue", "netflow", "sflow", "ipfix")


def clear(network: Network, _options: list[str], words: list[str]) -> None:
    if len(words) < 3:
        raise Wrong("'clear' command requires at least 3 arguments")
    table, name, columns = words[0].lower(), words[1], words[2:]
    if table == "bridge":
        network.bridge(name)
    elif table == "port":
        network.bridge_of(name)
    if table not in ("bridge", "port") or any(column not in _EMPTY for column in columns):
        raise Refused(f"clear {' '.join(words)}: not supported on switches of fastpath")


def destroy(_network: Network, options: list[str], words: list[str]) -> None:
    if "--all" not in options or len(words) != 1 or words[0].lower() not in _EMPTY_TABLES:
        raise Refused(f"destroy {' '.join(words)}: not supported on switches of fastpath")


def with_port(target: str) -> str:
    """Return an address of a controller with its port: tcp:127.0.0.1 has 6653."""
    protocol, _, address = target.partition(":")
    host = address[address.find("]") + 1 :] if address.startswith("[") else address
    needs_port = protocol in ("tcp", "ssl") and ":" not in host
    return f"{target}:6653" if needs_port else target


_CHANGES: dict[str, Callable[[Network, list[str], list[str]], None]] = {
    "init": lambda _network, _options, _words: None,
    "get": get,
    "add-br": add_bridge,
    "del-br": delete_bridge,
    "add-port": add_port,
    "del-port": delete_port,
    "set-controller": set_controller,
    "del-controller": delete_controller,
    "set-fail-mode": set_fail_mode,
    "set": set_columns,
    "clear": clear,
    "destroy": destroy,
}
