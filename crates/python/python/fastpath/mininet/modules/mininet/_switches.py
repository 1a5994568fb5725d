"""Switches: those that learn, and those with a flow table."""

import os
import re

from fastpath.mininet.network import free_port

from mininet._node import SENTINEL, Node
from mininet.lab import NETWORK
from mininet.link import Intf
from mininet.util import errRun


class Switch(Node):
    """A switch of the network. Commands on it run on the machine."""

    portBase = 1
    dpidLen = 16
    batch = False

    def __init__(self, name, dpid=None, opts="", listenPort=None, **params):
        Node.__init__(self, name, **{**params, "inNamespace": False})
        self._unknown(params)
        self.dpid = self.defaultDpid(dpid)
        self.opts = opts
        self.listenPort = listenPort
        self.controllers = []
        self.is_started = False
        # The port of the machine at which the switch takes flows.
        self.listen = None
        self.controlIntf = Intf("lo", self, port=0)

    def defaultDpid(self, dpid=None):
        if dpid:
            dpid = dpid.replace(":", "")
            assert len(dpid) <= self.dpidLen and int(dpid, 16) >= 0
        else:
            nums = re.findall(r"\d+", self.name)
            if not nums:
                self.terminate()
                raise Exception(
                    "Unable to derive default datapath ID - please either specify a dpid or use a "
                    "canonical switch name such as s23."
                )
            dpid = hex(int(nums[0]))[2:]
        return "0" * (self.dpidLen - len(dpid)) + dpid

    def description(self):
        return "switch", {}

    def table(self):
        """Return what programs such as ovs-ofctl need to know of the flow table."""
        return {"listen": None, "why": f"{self.name} is a {type(self).__name__}, which has no flow table"}

    def has_interfaces(self):
        return False

    def is_of_machine(self):
        return False

    def is_of_database(self):
        return False

    def runs_programs(self):
        return False

    def configuration(self, network, mine):
        return ""

    def shell_command(self):
        return ["env", f"PS1={SENTINEL}", "bash", "--norc", "--noediting", "-is", f"mininet:{self.name}"]

    def defaultIntf(self):
        return self.controlIntf

    def sendCmd(self, *cmd, **kwargs):
        NETWORK.programs()
        kwargs.setdefault("printPid", False)
        return Node.sendCmd(self, *cmd, **kwargs)

    def config(self, **_params):
        return {}

    def setIP(self, ip, prefixLen=8, intf=None, **kwargs):
        raise Exception(f"{self.name}: a switch of fastpath has no address on the machine; add a host for it")

    def start(self, controllers):
        """Take controllers. The lab comes up with the first command on a host, or with the network."""
        self.controllers = [controller for controller in controllers or [] if controller]
        self.is_started = True
        if NETWORK.is_up:
            NETWORK.follow_bridges()
            NETWORK.programs()

    def connected(self):
        return True

    def attach(self, intf):
        """A port takes part as soon as its link exists."""

    def detach(self, intf):
        """A port leaves with its link."""

    def dpctl(self, *args):
        return self.cmd("ovs-ofctl", args[0], self.name, *args[1:])

    def vsctl(self, *args, **_kwargs):
        return self.cmd("ovs-vsctl", *args)

    def bridgeOpts(self):
        return ""

    def __repr__(self):
        intfs = ",".join(f"{i.name}:{i.IP()}" for i in self.intfList())
        return f"<{self.__class__.__name__} {self.name}: {intfs} pid={os.getpid()}> "


class FlowSwitch(Switch):
    """A switch with a flow table: of its controller, of ovs-ofctl, or of both."""

    failMode = "secure"
    protocols = None
    # Milliseconds after which it connects to a controller again, at most.
    reconnect_ms = None

    def is_of_database(self):
        return NETWORK.of_database is not None

    def attach(self, intf):
        if self.is_of_database():
            NETWORK.of_database.attach(self, str(intf))

    def detach(self, intf):
        if self.is_of_database():
            NETWORK.of_database.detach(self, str(intf))

    def connected(self):
        return not self.is_of_database() or NETWORK.of_database.is_connected(self)

    def own_controllers(self):
        """Return the controllers given to `start`; before it, those of the network."""
        return self.controllers if self.is_started else NETWORK.controllers

    def remotes(self):
        """Return the controllers that the switch connects to."""
        controllers = self.own_controllers()
        # A remote controller at the address of one that makes switches learn is that one.
        known = [(node.ip, node.port) for node in NETWORK.controllers if not node.is_remote()]
        return [node for node in controllers if node.is_remote() and (node.ip, node.port) not in known]

    def learns(self):
        """Return whether it forwards by learned addresses what matches no flow of a script."""
        return not self.remotes() and (bool(self.own_controllers()) or self.failMode == "standalone")

    def description(self):
        if self.is_of_database():
            return "bridge", {}
        if self.learns() and not NETWORK.has_flows(self):
            return "switch", {}
        if self.listen is None:
            self.listen = free_port()
        keys = {"dpid": f"0x{int(self.dpid, 16):x}", "listen": [f"ptcp:{self.listen}:127.0.0.1"]}
        remotes = self.remotes()
        if remotes:
            keys["controller"] = [f"tcp:{node.ip}:{node.port}" for node in remotes]
        keys["fail_mode"] = "standalone" if self.learns() else self.failMode
        return "openflow", keys

    def table(self):
        has_table = self.description()[0] == "openflow"
        if self in NETWORK.rings:
            why = (f"{self.name} is part of a ring of switches, whose loops are cut: it learns addresses and takes "
                   "no flows; use controller=None with failMode='secure', or a RemoteController")
        else:
            why = (f"{self.name} learns addresses and takes no flows, because the script speaks of none; run it "
                   "with `python -m fastpath.mininet --openflow SCRIPT`")
        return {
            "listen": self.listen if has_table else None,
            "why": why,
            "listen_port": self.listenPort,
            "fail_mode": self.failMode,
            "dials": bool(self.remotes()),
            "is_taught": self.learns() and bool(self.own_controllers()),
        }


class OVSSwitch(FlowSwitch):
    """Open vSwitch's class."""

    def __init__(self, name, failMode="secure", datapath="kernel", inband=False, protocols=None,
                 reconnectms=1000, stp=False, batch=False, **params):
        Switch.__init__(self, name, **params)
        if failMode not in ("secure", "standalone"):
            raise Exception(f"{name}: failMode={failMode!r}; write 'secure' or 'standalone'")
        self.failMode = failMode
        self.datapath = datapath
        self.protocols = protocols
        self.reconnect_ms = reconnectms
        self.stp = stp
        if protocols and "OpenFlow13" not in str(protocols) and not self.is_of_database():
            NETWORK.remarks.warn(f"{name}: protocols={protocols}: it speaks OpenFlow 1.3")
        if inband:
            NETWORK.remarks.warn(f"{name}: inband has no effect; its controllers are outside the network")

    @classmethod
    def isOldOVS(cls):
        return False

    @classmethod
    def batchStartup(cls, switches, run=errRun):
        return switches

    @classmethod
    def batchShutdown(cls, switches, run=errRun):
        return switches

    def controllerUUIDs(self, update=False):
        return []


OVSKernelSwitch = OVSSwitch
KernelSwitch = OVSSwitch


class OVSBridge(OVSSwitch):
    """A learning switch without a controller."""

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("failMode", "standalone")
        OVSSwitch.__init__(self, *args, **kwargs)

    def own_controllers(self):
        return []

    def start(self, controllers):
        OVSSwitch.start(self, controllers=[])


class UserSwitch(FlowSwitch):
    """The switch of the OpenFlow reference implementation: here as any other."""

    def __init__(self, name, dpopts="--no-slicing", **kwargs):
        Switch.__init__(self, name, **kwargs)


class IVSSwitch(FlowSwitch):
    """Indigo Virtual Switch: here as any other switch."""


class LinuxBridge(Switch):
    """A bridge; loops are cut when the network is built, as its spanning tree would."""

    def __init__(self, name, stp=False, prio=None, **kwargs):
        Switch.__init__(self, name, **kwargs)
