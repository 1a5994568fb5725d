"""Topologies as graphs, before they are networks."""

from mininet.util import irange, natural, naturalSeq


class MultiGraph:
    """A graph with several edges between two nodes."""

    def __init__(self):
        self.node = {}
        self.edge = {}

    def add_node(self, node, attr_dict=None, **attrs):
        attr = {} if attr_dict is None else attr_dict
        attr.update(attrs)
        self.node[node] = attr

    def add_edge(self, src, dst, key=None, attr_dict=None, **attrs):
        attr = {} if attr_dict is None else attr_dict
        attr.update(attrs)
        self.node.setdefault(src, {})
        self.node.setdefault(dst, {})
        self.edge.setdefault(src, {}).setdefault(dst, {})
        self.edge.setdefault(dst, {})[src] = entry = self.edge[src][dst]
        if not key:
            key = max([0, *entry.keys()]) + 1
        entry[key] = attr
        return key

    def nodes(self, data=False):
        return self.node.items() if data else self.node.keys()

    def edges_iter(self, data=False, keys=False):
        for src, entry in self.edge.items():
            for dst, entrykeys in entry.items():
                if src > dst:
                    continue
                for key, attrs in entrykeys.items():
                    if data:
                        yield (src, dst, key, attrs) if keys else (src, dst, attrs)
                    else:
                        yield (src, dst, key) if keys else (src, dst)

    def edges(self, data=False, keys=False):
        return list(self.edges_iter(data=data, keys=keys))

    def __getitem__(self, node):
        return self.edge[node]

    def __len__(self):
        return len(self.node)

    def convertTo(self, cls, data=False, keys=False):
        graph = cls()
        graph.add_nodes_from(self.nodes(data=data))
        graph.add_edges_from(self.edges(data=(data or keys), keys=keys))
        return graph


class Topo:
    """Nodes and links with their options. Subclasses override `build`."""

    def __init__(self, *args, **params):
        self.g = MultiGraph()
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self.ports = {}
        self.build(*args, **params)

    def build(self, *args, **params):
        """Add nodes and links: to be overridden."""

    def addNode(self, name, **opts):
        self.g.add_node(name, **opts)
        return name

    def addHost(self, name, **opts):
        if not opts and self.hopts:
            opts = self.hopts
        return self.addNode(name, **opts)

    def addSwitch(self, name, **opts):
        if not opts and self.sopts:
            opts = self.sopts
        return self.addNode(name, isSwitch=True, **opts)

    def addLink(self, node1, node2, port1=None, port2=None, key=None, **opts):
        if not opts and self.lopts:
            opts = self.lopts
        port1, port2 = self.addPort(node1, node2, port1, port2)
        opts = dict(opts)
        opts.update(node1=node1, node2=node2, port1=port1, port2=port2)
        return self.g.add_edge(node1, node2, key, opts)

    def nodes(self, sort=True):
        return self.sorted(self.g.nodes()) if sort else self.g.nodes()

    def isSwitch(self, n):
        return self.g.node[n].get("isSwitch", False)

    def switches(self, sort=True):
        return [n for n in self.nodes(sort) if self.isSwitch(n)]

    def hosts(self, sort=True):
        return [n for n in self.nodes(sort) if not self.isSwitch(n)]

    def iterLinks(self, withKeys=False, withInfo=False):
        for _src, _dst, key, info in self.g.edges_iter(data=True, keys=True):
            node1, node2 = info["node1"], info["node2"]
            if withKeys:
                yield (node1, node2, key, info) if withInfo else (node1, node2, key)
            else:
                yield (node1, node2, info) if withInfo else (node1, node2)

    def links(self, sort=False, withKeys=False, withInfo=False):
        links = list(self.iterLinks(withKeys, withInfo))
        if not sort:
            return links
        return sorted(links, key=lambda link: tuple(naturalSeq(part) for part in link[:2]))

    def addPort(self, src, dst, sport=None, dport=None):
        self.ports.setdefault(src, {})
        self.ports.setdefault(dst, {})
        if sport is None:
            base = 1 if self.isSwitch(src) else 0
            sport = len(self.ports[src]) + base
        if dport is None:
            base = 1 if self.isSwitch(dst) else 0
            dport = len(self.ports[dst]) + base
        self.ports[src][sport] = (dst, dport)
        self.ports[dst][dport] = (src, sport)
        return sport, dport

    def port(self, src, dst):
        for sport, (node, dport) in self.ports[src].items():
            if node == dst:
                return sport, dport
        raise Exception(f"there is no link between {src} and {dst}")

    def _linkEntry(self, src, dst, key=None):
        entry = self.g[src][dst]
        if key is None:
            key = min(entry)
        return entry, key

    def linkInfo(self, src, dst, key=None):
        entry, key = self._linkEntry(src, dst, key)
        return entry[key]

    def setlinkInfo(self, src, dst, info, key=None):
        entry, key = self._linkEntry(src, dst, key)
        entry[key] = info

    def nodeInfo(self, name):
        return self.g.node[name]

    def setNodeInfo(self, name, info):
        self.g.node[name] = info

    def convertTo(self, cls, data=True, keys=True):
        return self.g.convertTo(cls, data=data, keys=keys)

    @staticmethod
    def sorted(items):
        return sorted(items, key=natural)


class SingleSwitchTopo(Topo):
    """One switch with k hosts."""

    def build(self, k=2, **_opts):
        self.k = k
        switch = self.addSwitch("s1")
        for h in irange(1, k):
            self.addLink(self.addHost(f"h{h}"), switch)


class SingleSwitchReversedTopo(Topo):
    """One switch with k hosts, ports in the opposite order."""

    def build(self, k=2):
        self.k = k
        switch = self.addSwitch("s1")
        for h in irange(1, k):
            self.addLink(self.addHost(f"h{h}"), switch, port1=0, port2=(k - h + 1))


class MinimalTopo(SingleSwitchTopo):
    """One switch with two hosts."""

    def build(self):
        return SingleSwitchTopo.build(self, k=2)


class LinearTopo(Topo):
    """k switches in a row with n hosts each."""

    def build(self, k=2, n=1, sopts=None, **_opts):
        self.k, self.n = k, n
        last = None
        for i in irange(1, k):
            switch = self.addSwitch(f"s{i}", **(sopts or {}))
            for j in irange(1, n):
                name = f"h{i}" if n == 1 else f"h{j}s{i}"
                self.addLink(self.addHost(name), switch)
            if last:
                self.addLink(switch, last)
            last = switch
