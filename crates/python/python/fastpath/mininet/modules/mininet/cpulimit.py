"""Shares of the processors by cgroups (version 1), as Mininet sets them."""

import atexit
import itertools
import math
import os
import signal
import time

from mininet.log import warn

ROOT = "/sys/fs/cgroup"
RT_PRIORITY = 20
# Seconds that programs have to end by themselves, and to end once they are killed.
_PATIENCE = 1.0
_PATIENCE_KILLED = 10.0


class CpuLimit:
    """The limit of one host. Where the kernel offers none, a warning is given once."""

    said = set()
    hosts = itertools.count()

    def __init__(self, name, sched):
        self.sched = sched
        self.cores = None
        self.has_limit = False
        self.directories = {}
        for controller in ("cpu", "cpuacct"):
            path = os.path.join(ROOT, controller, f"fastpath-mn-{os.getpid()}-{name}")
            try:
                os.makedirs(path, exist_ok=True)
            except OSError:
                continue
            # In a mount of version 2 these files are missing.
            if os.path.exists(os.path.join(path, "tasks")):
                self.directories[controller] = path
        atexit.register(self.remove)

    def _file(self, controller, name):
        return os.path.join(self.directories.get(controller, ""), name)

    def _warn(self, text):
        if text not in CpuLimit.said:
            CpuLimit.said.add(text)
            warn(f"*** CPULimitedHost: {text}\n")

    def set_fraction(self, fraction, period_us):
        if not os.path.exists(self._file("cpu", "cpu.cfs_quota_us")):
            self._warn("this machine has no cgroup v1 controller cpu: hosts are not limited")
            return
        cores = os.cpu_count() or 1
        if self.sched == "rt":
            if not os.path.exists(self._file("cpu", "cpu.rt_runtime_us")):
                self.remove()
                raise Exception("sched='rt': this kernel has no real-time group scheduling; write 'cfs'")
            # The kernel takes a share of each processor: as few processors as carry the whole.
            share = max(fraction, 0) * cores
            used = max(math.ceil(share), 1)
            first = next(CpuLimit.hosts)
            self.cores = self.cores or ",".join(str((first + n) % cores) for n in range(used))
            settings = [("cpu.rt_period_us", period_us), ("cpu.rt_runtime_us", int(period_us * share / used))]
        else:
            quota = int(period_us * fraction * cores) if fraction > 0 else -1
            if 0 <= quota < 1000:
                # The smallest quota of the kernel is 1 ms.
                period_us, quota = int(period_us * 1000 / max(quota, 1)), 1000
            settings = [("cpu.cfs_period_us", period_us), ("cpu.cfs_quota_us", quota)]
        for name, value in settings:
            try:
                with open(self._file("cpu", name), "w") as file:
                    file.write(str(value))
            except OSError as error:
                self.remove()
                raise Exception(f"{name} = {value} is refused by the kernel: {error}") from error
        self.has_limit = fraction > 0

    def wrapped(self, words):
        """Return a command line whose program is in the cgroups."""
        if self.sched == "rt" and self.has_limit:
            words = ["chrt", "--rr", str(RT_PRIORITY), *words]
        if self.cores is not None:
            words = ["taskset", "-c", self.cores, *words]
        joins = " && ".join(f"echo $$ > {path}/tasks" for path in self.directories.values())
        return ["sh", "-c", f'{joins} && exec "$@"', "sh", *words] if joins else words

    def used_ns(self):
        """Return the processor time of all programs."""
        try:
            with open(self._file("cpuacct", "cpuacct.usage")) as file:
                return int(file.read())
        except FileNotFoundError:
            raise Exception("this machine has no cgroup v1 controller cpuacct") from None

    def remove(self):
        """Remove the cgroups, once their programs have ended. What stays is killed."""
        for path in self.directories.values():
            if not _removed(path, _PATIENCE):
                _kill(path)
                if not _removed(path, _PATIENCE_KILLED):
                    warn(f"*** CPULimitedHost: {path} cannot be removed; its programs: {_programs(path)}\n")
        self.directories = {}


def _programs(path):
    """Return the process numbers in a cgroup."""
    try:
        with open(os.path.join(path, "cgroup.procs")) as file:
            return [int(line) for line in file]
    except OSError:
        return []


def _kill(path):
    for pid in _programs(path):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # It has ended, or belongs to another user and is named then.


def _removed(path, patience):
    """Try to remove a cgroup for some seconds. Return whether it is gone."""
    until = time.monotonic() + patience
    while True:
        try:
            os.rmdir(path)
            return True
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > until:
                return False
        time.sleep(0.02)
