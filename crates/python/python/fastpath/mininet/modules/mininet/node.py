"""Nodes: hosts, switches and controllers."""

from mininet._controllers import (
    NOX,
    Controller,
    DefaultController,
    DefaultControllers,
    NullController,
    OVSController,
    RemoteController,
    Ryu,
    findController,
)
from mininet._node import Node
from mininet._switches import (
    IVSSwitch,
    KernelSwitch,
    LinuxBridge,
    OVSBridge,
    OVSKernelSwitch,
    OVSSwitch,
    Switch,
    UserSwitch,
)
from mininet.cpulimit import CpuLimit

__all__ = [
    "NOX",
    "CPULimitedHost",
    "Controller",
    "DefaultController",
    "DefaultControllers",
    "Host",
    "IVSSwitch",
    "KernelSwitch",
    "LinuxBridge",
    "Node",
    "NullController",
    "OVSBridge",
    "OVSController",
    "OVSKernelSwitch",
    "OVSSwitch",
    "RemoteController",
    "Ryu",
    "Switch",
    "UserSwitch",
    "findController",
]


class Host(Node):
    """A host."""


class CPULimitedHost(Host):
    """A host whose programs have a share of the processors (cgroups(7))."""

    def __init__(self, name, sched="cfs", **kwargs):
        Host.__init__(self, name, **kwargs)
        if sched not in ("cfs", "rt", "none"):
            raise Exception(f"{name}: sched={sched!r} is not a scheduler; write 'cfs' or 'rt'")
        self.sched = sched
        self.period_us = kwargs.get("period_us", 100000)
        self.limit = CpuLimit(name, sched)

    inited = False

    @classmethod
    def init(cls):
        cls.inited = True

    def wrapped(self, words):
        return self.limit.wrapped(words)

    def cpu_time_ns(self):
        """Return the processor time that its programs have used."""
        return self.limit.used_ns()

    def setCPUFrac(self, f, sched=None):
        """Limit the programs to a fraction of all processors; -1 is no limit."""
        if f is None or f == 0:
            return
        self.limit.set_fraction(f, self.period_us)

    def setCPUs(self, cores, mems=0):
        cores = cores if isinstance(cores, (list, tuple)) else [cores]
        if cores:
            self.limit.cores = ",".join(map(str, cores))
            if self._shell:
                self.cmd(f"taskset -cp {self.limit.cores} $$")

    def config(self, cpu=-1, cores=None, **params):
        r = Node.config(self, **params)
        self.setParam(r, "setCPUFrac", cpu=cpu)
        self.setParam(r, "setCPUs", cores=cores)
        return r

    def cleanup(self):
        Host.cleanup(self)
        self.limit.remove()
