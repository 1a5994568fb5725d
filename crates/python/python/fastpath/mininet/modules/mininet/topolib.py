"""Trees and tori."""

from mininet.net import Mininet
from mininet.topo import Topo


class TreeTopo(Topo):
    """A tree of switches with hosts as leaves."""

    def build(self, depth=1, fanout=2):
        self.hostNum = 1
        self.switchNum = 1
        self.addTree(depth, fanout)

    def addTree(self, depth, fanout):
        if depth <= 0:
            node = self.addHost(f"h{self.hostNum}")
            self.hostNum += 1
            return node
        node = self.addSwitch(f"s{self.switchNum}")
        self.switchNum += 1
        for _ in range(fanout):
            self.addLink(node, self.addTree(depth - 1, fanout))
        return node


def TreeNet(depth=1, fanout=2, **kwargs):
    """A network of a tree."""
    return Mininet(TreeTopo(depth, fanout), **kwargs)


class TorusTopo(Topo):
    """A 2-D torus of switches with n hosts each. Its loops need switches that cut them."""

    def build(self, x, y, n=1):
        if x < 3 or y < 3:
            raise Exception("Please use 3x3 or greater for compatibility with 2.1")
        self.n = n
        switches, dpid = {}, 0
        for i in range(x):
            for j in range(y):
                loc = f"{i + 1}x{j + 1}"
                dpid = (i + 1) * 256 + (j + 1)
                switch = switches[i, j] = self.addSwitch("s" + loc, dpid="%x" % dpid)
                for k in range(n):
                    name = "h" + loc if n == 1 else f"h{loc}x{k + 1}"
                    self.addLink(self.addHost(name), switch)
        for i in range(x):
            for j in range(y):
                self.addLink(switches[i, j], switches[i, (j + 1) % y])
                self.addLink(switches[i, j], switches[(i + 1) % x, j])
