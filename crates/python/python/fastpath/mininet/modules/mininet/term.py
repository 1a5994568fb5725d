"""Terminal windows of nodes."""

from os import environ

from mininet.log import error


def makeTerm(node, title="Node", term="xterm", display=None, cmd="bash"):
    """Open a terminal on a node. Returns its processes."""
    if not (display or environ.get("DISPLAY")):
        error(f"*** {node.name}: no terminal: DISPLAY is not set\n")
        return []
    import subprocess

    from mininet.lab import NETWORK

    words = NETWORK.lab[node.name].arguments([cmd]) if node.inNamespace else [cmd]
    name = f"'{title}: {node.name}'" if title else node.name
    return [subprocess.Popen([term, "-title", name, "-e", *words])]


def makeTerms(nodes, title="Node", term="xterm"):
    return [made for node in nodes for made in makeTerm(node, title, term)]


def runX11(node, cmd):
    return [None, node.popen(cmd)] if environ.get("DISPLAY") else [None, None]


def tunnelX11(node, display=None):
    return environ.get("DISPLAY"), None


def cleanUpScreens():
    """No screens are started."""
