"""Controllers: those that switches replace, and those that run."""

import os
import socket
import tempfile

from mininet._node import Node
from mininet.lab import NETWORK
from mininet.log import warn

# The commands of controllers that make switches learn addresses.
_TEACHERS = ("controller", "ovs-controller", "ovs-testcontroller", "test-controller")


class Controller(Node):
    """The reference controller, which makes switches learn addresses; they do that themselves.

    Another command, or a class of the script with a start of its own, is a controller that runs: the
    switches connect to it.
    """

    def __init__(self, name, inNamespace=False, command="controller", cargs="-v ptcp:%d", cdir=None,
                 ip="127.0.0.1", port=6653, protocol="tcp", **params):
        self.command = command
        self.cargs = cargs
        self.cdir = cdir
        self.ip, self.port, self.protocol = ip, port, protocol
        Node.__init__(self, name, inNamespace=False, **params)
        NETWORK.controllers.append(self)

    def description(self):
        return None, {}

    def is_of_machine(self):
        return False

    def is_remote(self):
        """Return whether switches connect to it."""
        return self.command not in _TEACHERS or not type(self).start.__module__.startswith("mininet.")

    def start(self):
        """Start the command, unless the switches learn addresses themselves."""
        if not self.is_remote():
            if NETWORK.of_database is not None:
                NETWORK.of_database.teach(self)
            return
        if self.cdir is not None:
            self.cmd("cd", self.cdir)
        log = os.path.join(tempfile.gettempdir(), f"{self.name}.log")
        arguments = self.cargs % self.port if "%" in self.cargs else self.cargs
        self.cmd(f"{self.command} {arguments} 1>{log} 2>{log} &")
        self.execed = True

    def stop(self, *args, **kwargs):
        if self.execed and self._shell:
            self.cmd("kill $(jobs -p) 2>/dev/null; wait")
        if NETWORK.of_database is not None:
            NETWORK.of_database.end_teaching(self)
        self.terminate()

    def checkListening(self):
        """No port is needed."""

    def IP(self, intf=None):
        return self.ip

    @classmethod
    def isAvailable(cls):
        return True

    def __repr__(self):
        return f"<{self.__class__.__name__} {self.name}: {self.IP()}:{self.port} pid={os.getpid()}> "


class OVSController(Controller):
    """Open vSwitch's test controller."""

    def __init__(self, name, **kwargs):
        Controller.__init__(self, name, **kwargs)


class NOX(Controller):
    def __init__(self, name, *_noxArgs, **_kwargs):
        raise Exception(f"controller {name}: NOX is not here; start it yourself and use RemoteController")


class Ryu(Controller):
    def __init__(self, name, *_ryuArgs, **_kwargs):
        raise Exception(f"controller {name}: start Ryu (os-ken) yourself and use RemoteController")


class RemoteController(Controller):
    """A controller that runs outside: OpenFlow switches connect to it."""

    def __init__(self, name, ip="127.0.0.1", port=None, **kwargs):
        Controller.__init__(self, name, ip=ip, port=port or 6653, **kwargs)

    def is_remote(self):
        return True

    def isListening(self, ip, port):
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((ip, int(port))) == 0

    def checkListening(self):
        if not self.isListening(self.ip, self.port):
            warn(f"Unable to contact the remote controller at {self.ip}:{self.port}\n")

    def start(self):
        """The switches connect to it."""
        self.checkListening()


DefaultControllers = (Controller, OVSController)


def findController(controllers=DefaultControllers):
    return controllers[0]


def DefaultController(name, controllers=DefaultControllers, **kwargs):
    return controllers[0](name, **kwargs)


def NullController(*_args, **_kwargs):
    """No controller."""
    return None
