"""Interfaces of the machine as ports of switches."""

from mininet._node import Node
from mininet.lab import NETWORK
from mininet.link import Intf, Link


class MachinePort(Node):
    """Where frames of an interface of the machine enter and leave. No program runs there."""

    def __init__(self, interface):
        Node.__init__(self, f"hw-{interface}", inNamespace=False)
        self.interface = interface

    def description(self):
        return "host", {"port": self.interface}

    def is_of_machine(self):
        return False

    def configuration(self, network, mine):
        return ""


class MachineLink(Link):
    """The link between a switch and an interface of the machine."""

    def __init__(self, intf):
        self.fast = True
        self.lab_name = f"{intf.node.name}-{intf.name}"
        self.intf1 = intf
        port = MachinePort(intf.name)
        self.intf2 = Intf("port", node=port, link=self)


def joined(intf):
    """Make an interface of the machine the port of a switch that it belongs to; return the link."""
    link = MachineLink(intf)
    NETWORK.remarks.warn(f"{intf.node.name}: the machine's interface {intf.name} is a port of it; the machine gets its "
                         "frames too")
    return link
