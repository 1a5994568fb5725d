"""The lab behind a network of Mininet's classes.

```text
 Host(…), Link(…), Switch(…)      recorded here as they are made
        │ first command on a host, or start
        ▼
 fastpath.Topology ─▶ fastpath lab up ─▶ names, MAC and IP addresses as Mininet gives them
        │ later nodes and links
        ▼
 fastpath lab apply
```

Where the programs of Open vSwitch are installed and the script calls ovs-vsctl, its switches are bridges of a
database (`fastpath.mininet.database`, `bridges.py`). Their ports are TAP interfaces of the machine, and each
of them is a node of the lab.

Mininet makes each namespace and veth pair at once. A lab is made as a whole, so nodes and links are
collected until a command must run.
"""

import atexit
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import fastpath
from fastpath.mininet import database
from fastpath.mininet.carried import FAST_BPS, sample, shortfalls
from fastpath.mininet.network import MARK
from fastpath.mininet.remarks import Remarks
from fastpath.mininet.tables import in_rings, speaks_of_database, switches_with_flows_max
from fastpath.program import program

from mininet.bridges import Bridges
from mininet.log import debug

# The programs that scripts call beside those of hosts; see `fastpath.mininet.programs`.
PROGRAMS = ("ovs-ofctl", "ovs-vsctl", "controller", "ofdatapath", "ofprotocol", "vconfig", "ovs-appctl",
            "ovs-dpctl", "ovsdb-client", "ovs-tcpdump", "ovs-testcontroller")
# Programs of the machine that are ours only when they name a port of a switch.
TOOLS = ("tc", "ip", "ifconfig", "ethtool", "tcpdump", "tshark")
_TOOL = """#!/bin/sh
read -r ports 2>/dev/null <{directory}/ports
for word; do
  case " $ports " in *" $word "*) exec {command} {name} "$@";; esac
done
rest=$(printf %s "$PATH" | sed 's|^{directory}:||')
real=$(PATH=$rest command -v {name}) || exec {command} {name} "$@"
exec "$real" "$@"
"""
# sudo takes the path of the machine, which does not have our programs.
_SUDO = """#!/bin/sh
count=0
for word; do
  case "$word" in -*|*=*) count=$((count + 1));; *) break;; esac
done
case " {names} " in *" $word "*) shift $count; exec "$@";; esac
rest=$(printf %s "$PATH" | sed 's|^{directory}:||')
real=$(PATH=$rest command -v sudo) || {{ shift $count; exec "$@"; }}
exec "$real" "$@"
"""
# Files of the directory that end with a network.
_FILES = ("switches.json", "bridges.json", "changed.json", "ports", "renamed")

# Mininet's hosts have IPv6 with link-local addresses. Every address is announced by multicast,
# which switches flood: the traffic grows with the square of the hosts.
IPV6_HOSTS_MAX = 64
# Fast links are watched during commands in networks with at most this many.
WATCHED_LINKS_MAX = 200


class Network:
    """The nodes and links since the last stop, and their lab."""

    def __init__(self):
        self.nodes = []
        self.links = []
        self.controllers = []
        self.lab = None
        # By node and interface: the name it has in the lab now.
        self.named = {}
        self.applied = 0
        self.is_leaving = False
        self.directory = None
        # Links by their ends in the lab: a link whose end has moved is another one there.
        self.ends = {}
        self.is_stale = False
        self.bridges_at = 0
        # What programs of the script did not do.
        self.remarks = None
        # The switches between which there is more than one path.
        self.rings = set()
        self._has_flows = None
        # The bridges of the database, if there is one.
        self.database = None
        self.of_database = None

    @property
    def is_up(self):
        return self.lab is not None

    def hosts(self):
        """Return the hosts of the lab by name; none before it is up."""
        return self.lab.hosts if self.lab else {}

    def add_node(self, node):
        self.nodes.append(node)

    def add_link(self, link):
        self.links.append(link)
        if self.is_up:
            self.sync()

    def remove_link(self, link):
        if link not in self.links:
            return
        self.links.remove(link)
        if self.is_up:
            # The lab follows with the next command on a host, if there is one.
            self.is_stale = True
            if link in self.ends:
                self.lab.link(link.lab_name).set(state="down")

    def make_programs(self):
        """Put our programs before those of the machine on the path."""
        if self.directory is not None:
            return
        self.directory = tempfile.mkdtemp(prefix="fastpath-mn-")
        self.remarks = Remarks(self.directory)
        directory = shlex.quote(self.directory)
        command = f"{shlex.quote(sys.executable)} -m fastpath.mininet.programs {directory}"
        for name in (*PROGRAMS, *TOOLS, "sudo"):
            path = os.path.join(self.directory, name)
            with open(path, "w") as file:
                if name in TOOLS:
                    file.write(_TOOL.format(directory=directory, command=command, name=name))
                elif name == "sudo":
                    file.write(_SUDO.format(directory=directory, names=" ".join((*PROGRAMS, *TOOLS))))
                else:
                    file.write(f'#!/bin/sh\nexec {command} {name} "$@"\n')
            os.chmod(path, 0o755)
        with open(os.path.join(self.directory, MARK), "w"):
            pass
        os.environ["PATH"] = os.pathsep.join([self.directory, os.environ.get("PATH", "")])

    def make_database(self):
        """Start a database of Open vSwitch if the script asks for one and the programs are there."""
        option = os.environ.get(database.OPTION)
        if self.database is not None or option == "0" or not (option or speaks_of_database()):
            return
        paths = database.programs()
        if paths is None or os.geteuid() != 0:
            if option:
                names = ", ".join((*database.NEEDED, "vswitch.ovsschema"))
                raise Exception(f"--ovsdb: it needs root and the programs of Open vSwitch ({names})")
            return
        self.database = database.Database(self.directory, paths)
        self.of_database = Bridges(self, self.database)

    def leave_database(self):
        """Go on without the database: it cannot have this network."""
        self.of_database.clear(is_leaving=True)
        self.database.close()
        self.database, self.of_database = None, None
        os.environ[database.OPTION] = "0"

    def programs(self):
        """Write down the switches for the programs ovs-ofctl and ovs-vsctl."""
        self.make_programs()
        switches = {
            node.name: {
                **node.table(),
                "dpid": node.dpid,
                "ports": {str(intf): port for port, intf in sorted(node.intfs.items()) if intf.name != "lo"},
                "links": {str(intf): intf.link.lab_name for intf in node.intfs.values() if intf.link},
                "lab": self.lab.name if self.lab else None,
                "controllers": [f"{c.protocol}:{c.ip}:{c.port}" for c in node.controllers if c],
                "in_ring": node in self.rings,
                "is_of_database": self.of_database is not None and node.is_of_database(),
            }
            for node in self.nodes
            if hasattr(node, "dpid")
        }
        # Programs that run read the whole of it.
        path = os.path.join(self.directory, "switches.json")
        with open(path + ".new", "w") as file:
            json.dump(switches, file)
        os.replace(path + ".new", path)
        ports = [port for switch in switches.values() for port in switch["ports"]]
        with open(os.path.join(self.directory, "ports"), "w") as file:
            file.write(" ".join(ports) + "\n")

    def has_flows(self, node):
        """Return whether a switch that learns addresses does so by a flow table, which takes flows.

        A network with such tables cannot change while it runs, and their loops are not cut. So only
        switches of scripts that speak of flows have them.
        """
        if self._has_flows is None:
            switches = sum(hasattr(node, "dpid") for node in self.nodes)
            self._has_flows = switches <= switches_with_flows_max()
        return self._has_flows and node not in self.rings

    def bridges(self):
        """Return the bridges that a script has made by ovs-vsctl: ports and controller by name."""
        if self.directory is None:
            return {}
        try:
            with open(os.path.join(self.directory, "bridges.json")) as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def look_at_names(self):
        """Take over the names that `ip link set PORT name NAME` has given to ports of switches."""
        path = os.path.join(self.directory or "", "renamed")
        if not os.path.exists(path):
            return
        with open(path) as file:
            renamed = [line.split() for line in file]
        os.remove(path)
        ports = [intf for link in self.links for intf in (link.intf1, link.intf2) if intf]
        for old, new in renamed:
            for intf in ports:
                if intf.name == old:
                    intf.node.nameToIntf.pop(old, None)
                    intf.name = new
                    intf.node.nameToIntf[new] = intf
                    if self.of_database is not None:
                        self.of_database.rename(intf.node, old, new)
        self.programs()

    def look_at_bridges(self):
        """Bring the lab up, or change it, when a script has given a bridge its controller or ports."""
        path = os.path.join(self.directory or "", "bridges.json")
        changed_at = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
        if changed_at == self.bridges_at:
            return
        self.bridges_at = changed_at
        if self.is_up:
            self.is_stale = True
        elif any(bridge["controllers"] for bridge in self.bridges().values()):
            self.sync()

    def topology(self):
        net = fastpath.Topology(family="v4")
        if not self.is_up:
            self.make_database()
            # All switches are known now.
            self._has_flows = None
            switches = [(link.intf1.node, link.intf2.node) for link in self.links
                        if all(hasattr(intf.node, "dpid") for intf in (link.intf1, link.intf2))]
            self.rings = in_rings(switches)
            for node in self.rings:
                if node.is_of_database() and node.learns():
                    # Loops are cut in the engine only.
                    self.leave_database()
            if self.of_database is not None and sum(node.is_of_database() for node in self.nodes) > database.SWITCHES_MAX:
                self.leave_database()
            for node in self.rings:
                if getattr(node, "stp", False) and node.description()[0] in ("openflow", "bridge"):
                    raise Exception(f"{node.name}: stp=True: loops of switches with flow tables are not cut; "
                                    "leave out the links that close them")
        self._find_bridges()
        links = [link for link in self.links if link.is_emulated()]
        # Nodes without links have nothing to do with the lab, except that programs run there.
        for node in self.nodes:
            kind, keys = node.description()
            if kind not in (None, "bridge"):
                net.node(kind, node.lab_name, **keys)
        for link in links:
            a, b = link.intf1, link.intf2
            keys = {"name": link.lab_name}
            # Interfaces of hosts have these names in the lab too, which finds them by their names.
            names = [intf.name if intf.node.has_interfaces() else "" for intf in (a, b)]
            if any(names):
                keys["interfaces"] = names
            for intf in (a, b):
                if intf.node.is_of_database():
                    # A renamed interface is the same end of its link.
                    intf.lab_end = intf.lab_end or intf.name
                    net.node("host", intf.lab_end, port=f"tap:{intf.lab_end}")
            for direction, intf in (("forward", a), ("backward", b)):
                values = intf.values()
                if values:
                    keys[direction] = values
            net.link(a.end_name, b.end_name, **keys)
        return net

    def _find_bridges(self):
        """A node on the machine whose interfaces are all ports of a bridge of ovs-vsctl is a switch."""
        bridges = self.bridges()
        linked = {intf.node for link in self.links for intf in (link.intf1, link.intf2) if intf}
        for node in linked:
            if node.inNamespace or hasattr(node, "dpid") or node.is_of_database():
                continue
            names = {intf.name for intf in node.intfs.values() if intf.name != "lo"}
            found = [bridge for bridge in bridges.values() if names <= set(bridge["ports"])]
            # A bridge that is deleted at the end of a script stays until the lab ends.
            node.bridge = found[0] if found else node.bridge

    def sync(self):
        """Bring the lab up, or make it what the nodes and links are now."""
        if self.is_leaving:
            return
        self.is_stale = False
        self.remarks.check()
        topology = self.topology()
        self._forget_moved()
        if not self.is_up:
            lab = fastpath.Lab(topology, f"mn-{os.getpid()}-{id(self) & 0xFFFF:x}-{self.applied}")
            topology.check()
            self.lab = lab.up()
        else:
            self._apply(topology)
        self.applied += 1
        self._configure()
        self.follow_bridges()
        self.programs()

    def follow_bridges(self):
        """Give the database the switches that have started, and their ports."""
        if self.of_database is not None and self.is_up:
            self.of_database.follow()

    def ensure_up(self):
        if not self.is_up or self.is_stale:
            self.sync()

    def _forget_moved(self):
        """An interface whose link leads elsewhere now may be a new one, with the address it had."""
        ends = {link: (link.intf1.node, link.intf2.node) for link in self.links if link.is_emulated()}
        for link, now in ends.items():
            before = self.ends.get(link)
            if before is None or before == now:
                continue
            for intf, node in zip((link.intf1, link.intf2), before):
                if intf.mac is None and node.runs_programs():
                    intf.updateMAC()
                self.named.get(node, {}).pop(intf, None)
        self.ends = ends

    def _apply(self, topology):
        topology.check()
        directory = tempfile.mkdtemp(prefix="fastpath-")
        try:
            path = topology.write(directory)
            done = subprocess.run(
                [program(), "lab", "apply", str(path), "--name", self.lab.name], capture_output=True, check=False
            )
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        if done.returncode != 0:
            why = done.stderr.decode(errors="replace").strip()
            if "unrecognized subcommand" in why:
                why = "this version of fastpath has no `lab apply`: add all nodes and links before start()"
            raise Exception(f"the running network cannot be changed: {why}")
        self.lab.topology = topology
        for node in topology.nodes:
            if node.keys["kind"] == "host" and node.name not in self.lab.hosts:
                self.lab.hosts[node.name] = fastpath.LabHost(self.lab, node.name)

    def _configure(self):
        """Give interfaces the names and addresses of Mininet, in all hosts at once."""
        running = []
        interfaces = {node: [] for node in self.nodes}
        for link in self.links:
            if link.is_emulated():
                for intf in (link.intf1, link.intf2):
                    interfaces.setdefault(intf.node, []).append(intf)
        for node in self.nodes:
            if node.lab_name not in self.lab.hosts:
                continue
            script = node.configuration(self, interfaces[node])
            if script:
                command = self.lab[node.lab_name].arguments(script)
                running.append((node, subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
                )))
            while len(running) > 32:
                self._finish(*running.pop(0))
        for node, process in running:
            self._finish(node, process)

    @staticmethod
    def _finish(node, process):
        out, _ = process.communicate()
        if process.returncode != 0:
            raise Exception(f"configuring {node.name}: {out.decode(errors='replace').strip()}")
        if out:
            debug(f"configuring {node.name}: {out.decode(errors='replace')}")

    def is_fast(self):
        """Return whether the lab has links that the machine may not carry."""
        if not self.is_up or len(self.links) > WATCHED_LINKS_MAX:
            return False
        rates = [intf.settings.get("rate", "") for link in self.links for intf in (link.intf1, link.intf2) if intf]
        return any(rate.removesuffix("bit").isdigit() and int(rate.removesuffix("bit")) >= FAST_BPS for rate in rates)

    def before_command(self):
        """Return the counters of fast links before a command of a host."""
        return sample(self.lab) if self.is_fast() else None

    def after_command(self, before):
        """Say what the machine carried while a command ran."""
        if before is not None and self.is_up:
            for text in shortfalls(before, sample(self.lab)):
                self.remarks.warn(text)

    def down(self):
        """Remove the lab and forget all nodes."""
        lab, self.lab = self.lab, None
        self.nodes, self.links, self.controllers, self.named = [], [], [], {}
        self.ends, self.is_stale = {}, False
        if self.of_database is not None:
            self.of_database.clear(is_leaving=self.is_leaving)
        if lab is not None:
            lab.close()
        self.rings, self._has_flows = set(), None
        if self.directory is not None:
            for name in _FILES:
                if os.path.exists(os.path.join(self.directory, name)):
                    os.remove(os.path.join(self.directory, name))
        self.bridges_at = 0


NETWORK = Network()
NETWORK.make_programs()
NETWORK.make_database()
_OWNER = os.getpid()


def _leave():
    if os.getpid() != _OWNER:
        return
    NETWORK.is_leaving = True
    NETWORK.down()
    if NETWORK.database is not None:
        NETWORK.database.close()
    shutil.rmtree(NETWORK.directory, ignore_errors=True)


atexit.register(_leave)
