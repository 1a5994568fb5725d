"""Switches as bridges of a database of Open vSwitch, as Mininet makes them by ovs-vsctl."""

import subprocess
import sys
import time

# Runs a program until standard input ends: with its owner, whatever ends that.
_KEEPER = """
exec 3<&0 </dev/null
"$@" 3<&- & program=$!
exec 2>/dev/null
while read -r line <&3; do :; done
kill -TERM $program
wait $program
"""
# Seconds in which a controller of ours has taught the switches.
_TAUGHT_S = 5.0
_POLL_S = 0.05
# Settings of an interface that no program of the machine uses.
_QUIET = {"ipv6/conf/{}/disable_ipv6": "1", "ipv4/conf/{}/arp_ignore": "8"}


class Bridges:
    """The bridges of the network's switches, and the controllers that make them learn."""

    def __init__(self, network, database):
        self._network = network
        self._database = database
        # By switch: the ports that it was given.
        self._made = {}
        # By controller: its process.
        self._teachers = {}

    def follow(self):
        """Make the switches that have started bridges, and give them their new interfaces."""
        started = [node for node in self._network.nodes if getattr(node, "is_started", False) and node.is_of_database()]
        words = []
        for node in started:
            if node not in self._made:
                words += self._bridge(node)
        given = {}
        for node in started:
            had = self._made.setdefault(node, set())
            ports = {intf.name: port for port, intf in node.intfs.items() if intf.name != "lo"}
            for name in sorted(set(ports) - had, key=ports.get):
                _quiet(name)
                words += self._port(node, name, ports[name])
                given[name] = node.name
            for name in sorted(had - set(ports)):
                words += ["--", "--if-exists", "del-port", node.name, name]
            self._made[node] = set(ports)
        self._configure_others()
        if words:
            self._database.vsctl(*words)
            self._database.give(given)
            self._tell()
            self._wait(started)

    @staticmethod
    def _bridge(node):
        name = node.name
        words = ["--", "--if-exists", "del-br", name, "--", "add-br", name, "--", "set", "bridge", name,
                 f"other_config:datapath-id={node.dpid}", f"fail_mode={node.failMode}",
                 "other_config:disable-in-band=true"]
        if node.protocols:
            protocols = node.protocols
            words.append(f"protocols={protocols if isinstance(protocols, str) else ','.join(protocols)}")
        targets = [(f"{one.protocol}:{one.ip}:{one.port}", node.reconnect_ms) for one in node.own_controllers()]
        if node.listenPort:
            targets.append((f"ptcp:{node.listenPort}", None))
        rows = [f"@{name}c{number}" for number in range(len(targets))]
        for row, (target, reconnect_ms) in zip(rows, targets):
            backoff = [f"max_backoff={reconnect_ms}"] if reconnect_ms else []
            words += ["--", f"--id={row}", "create", "Controller", f'target="{target}"', *backoff]
        return words + (["--", "set", "bridge", name, f"controller=[{','.join(rows)}]"] if rows else [])

    @staticmethod
    def _port(node, name, number):
        request = [f"ofport_request={number}"] if number > 0 else []
        words = ["--", "--may-exist", "add-port", node.name, name]
        return words + (["--", "set", "Interface", name, *request] if request else [])

    def _configure_others(self):
        """Give nodes on the machine, which are no switches of the script, the addresses of their interfaces."""
        for node in self._network.nodes:
            if hasattr(node, "dpid") or not node.is_of_database():
                continue
            had = self._made.setdefault(node, set())
            for intf in node.intfs.values():
                if intf.name == "lo" or intf.name in had:
                    continue
                had.add(intf.name)
                commands = [f"addr add {intf.ip}/{intf.prefixLen} brd + dev {intf.name}"] if intf.ip else []
                for command in [*commands, f"link set {intf.name} up"]:
                    subprocess.run(["ip", *command.split()], check=False, stdout=subprocess.DEVNULL)
                if not intf.ip:
                    _quiet(intf.name)

    def _tell(self):
        """Warn of what the network asks for and bridges cannot do."""
        for text in self._database.states():
            self._network.remarks.warn(text)

    def attach(self, node, name):
        """Add an interface to a bridge, as a script asks for."""
        intf = node.nameToIntf.get(name)
        self._made.setdefault(node, set()).add(name)
        _quiet(name)
        self._database.vsctl(*self._port(node, name, node.ports.get(intf, 0)))

    def detach(self, node, name):
        """Take an interface from a bridge. It is not added again."""
        self._database.vsctl("--if-exists", "del-port", node.name, name)

    def rename(self, node, old, new):
        """Keep a port that has got another name."""
        had = self._made.get(node, set())
        if old in had:
            had.discard(old)
            had.add(new)

    # Controllers -----------------------------------------------------------------------------

    def teach(self, controller):
        """Start a controller that makes switches learn addresses."""
        if controller in self._teachers:
            return
        words = [sys.executable, "-m", "fastpath.mininet.programs", self._network.directory, "controller",
                 f"ptcp:{controller.port}:{controller.ip}"]
        self._teachers[controller] = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "fastpath-controller", *words], stdin=subprocess.PIPE, start_new_session=True
        )

    def end_teaching(self, controller):
        """End a controller that was started here."""
        process = self._teachers.pop(controller, None)
        if process is not None:
            process.stdin.close()
            process.wait()

    def is_connected(self, node):
        """Return whether a controller of a bridge answers, or it has none to dial."""
        targets = [f"{one.protocol}:{one.ip}:{one.port}" for one in node.own_controllers()]
        connected = self._database.vsctl("--bare", "--columns=target", "find", "controller", "is_connected=true").split()
        return not targets or any(target in connected for target in targets)

    def _wait(self, nodes):
        """Wait until controllers that were started here have taught the switches."""
        taught = [node for node in nodes if any(one in self._teachers for one in node.own_controllers())]
        end = time.monotonic() + _TAUGHT_S
        while taught and time.monotonic() < end:
            taught = [node for node in taught if "NORMAL" not in self._database.ofctl("dump-flows", node.name)]
            if taught:
                time.sleep(_POLL_S)

    def clear(self, is_leaving):
        """End the controllers and remove all bridges."""
        for controller in list(self._teachers):
            self.end_teaching(controller)
        self._made = {}
        if not is_leaving:
            self._database.clear()


def _quiet(name):
    """Let the machine send nothing by an interface of its own accord."""
    for path, value in _QUIET.items():
        try:
            with open(f"/proc/sys/net/{path.format(name)}", "w") as file:
                file.write(value)
        except OSError:
            # There is no such interface, or no IPv6.
            continue
