"""Further nodes: a bridge and a NAT."""

from mininet.node import LinuxBridge, Node

__all__ = ["LinuxBridge", "NAT"]


class NAT(Node):
    """A node that translates addresses.

    In a namespace it does so by iptables. With ``inNamespace=False`` it leads to the network of the
    machine: it is an uplink of the lab, whose rules are its own.
    """

    def __init__(self, name, subnet="10.0/8", localIntf=None, flush=False, **params):
        super().__init__(name, **params)
        self.subnet = subnet
        self.localIntf = localIntf
        self.flush = flush

    def setManualConfig(self, intf):
        """No network manager touches interfaces of a lab."""

    def is_of_machine(self):
        # It is an uplink of the lab.
        return False

    def description(self):
        if self.inNamespace:
            return super().description()
        intf = self.defaultIntf()
        address = f"{intf.ip}/{intf.prefixLen}" if intf and intf.ip else self.params.get("ip")
        return "uplink", {"address": address} if address else {}

    def config(self, **params):
        if not self.inNamespace:
            super().config(**params)
            return
        localIntf = self.localIntf or self.defaultIntf()
        super().config(**params)
        if self.flush:
            self.cmd("sysctl net.ipv4.ip_forward=0")
            self.cmd("iptables -F; iptables -t nat -F")
            self.cmd("iptables -P INPUT ACCEPT; iptables -P OUTPUT ACCEPT; iptables -P FORWARD DROP")
        self.cmd("iptables -I FORWARD -i", localIntf, "-d", self.subnet, "-j DROP")
        self.cmd("iptables -A FORWARD -i", localIntf, "-s", self.subnet, "-j ACCEPT")
        self.cmd("iptables -A FORWARD -o", localIntf, "-d", self.subnet, "-j ACCEPT")
        self.cmd("iptables -t nat -A POSTROUTING -s", self.subnet, "'!'", "-d", self.subnet, "-j MASQUERADE")
        self.cmd("sysctl net.ipv4.ip_forward=1")
