"""The switches of a network, as programs beside it see them: files of its directory.

``switches.json`` is written by the script, ``bridges.json`` has the bridges that a script makes of ports
of nodes, ``changed.json`` what ovs-vsctl changed of the network's switches.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from typing import Any, Callable, Optional

from fastpath.program import program

Switches = dict[str, dict[str, Any]]


# A file of the directory of our programs.
MARK = "fastpath-programs"
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


class Refused(Exception):
    """A request that is not supported: it ends the script."""


class Wrong(Exception):
    """A request that Open vSwitch would refuse as well: its text is what the command prints."""


class Network:
    """The switches of the network, and the bridges that scripts have made of ports of nodes."""

    def __init__(self, directory: str, warn: Callable[[str], None]) -> None:
        self.directory = directory
        self.warn = warn
        self.switches: Switches = self._read("switches.json")
        self.bridges: Switches = self._read("bridges.json")
        self.changed: Switches = self._read("changed.json")
        for name, changed in self.changed.items():
            if name in self.switches:
                self.switches[name].update(changed)
        self._before = self._state()

    def _state(self) -> dict[str, str]:
        return {"bridges.json": json.dumps(self.bridges), "changed.json": json.dumps(self.changed)}

    def _read(self, name: str) -> Switches:
        try:
            with open(os.path.join(self.directory, name)) as file:
                found: Switches = json.load(file)
                return found
        except FileNotFoundError:
            return {}

    def write(self) -> None:
        """Keep what has changed."""
        for name, text in self._state().items():
            if text != self._before[name]:
                path = os.path.join(self.directory, name)
                with open(path + ".new", "w") as file:
                    file.write(text)
                os.replace(path + ".new", path)

    def change(self, name: str, **values: Any) -> None:
        """Change settings of a switch or bridge."""
        if name in self.bridges:
            self.bridges[name].update(values)
            return
        self.switches[name].update(values)
        self.changed.setdefault(name, {}).update(values)

    def all(self) -> Switches:
        return {**self.bridges, **self.switches}

    def bridge(self, name: str) -> dict[str, Any]:
        switches = self.all()
        if name not in switches:
            raise Wrong(f"no bridge named {name} (have: {', '.join(switches)})")
        return switches[name]

    def ports(self) -> dict[str, int]:
        """Return the numbers of the ports of all switches."""
        return {port: number for switch in self.all().values() for port, number in switch["ports"].items()}

    def ports_of(self, name: str) -> dict[str, int]:
        ports: dict[str, int] = self.bridge(name)["ports"]
        return ports

    def is_interface(self, port: str) -> bool:
        """Return whether the machine has a port as an interface: one of a bridge of the database."""
        return bool(self.all()[self.bridge_of(port)].get("is_of_database"))

    def set_link(self, port: str, state: str) -> None:
        """Take the link of a port up or down."""
        switch = self.all()[self.bridge_of(port)]
        link = switch.get("links", {}).get(port)
        if link is None:
            raise Refused(f"{port} {state}: take its link {state} by net.configLinkStatus in place of that")
        words = [program(), "ctl", "--lab", switch["lab"], "set", link, "--state", state]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(f"{port} {state}: {done.stderr.strip()}")

    def rename(self, port: str, name: str) -> None:
        """Give a port another name. The script takes it over after the command."""
        if name in self.ports():
            raise Wrong("RTNETLINK answers: File exists")
        with open(os.path.join(self.directory, "renamed"), "a") as file:
            file.write(f"{port} {name}\n")

    def bridge_of(self, port: str) -> str:
        for name, switch in self.all().items():
            if port in switch["ports"]:
                return name
        raise Wrong(f"no port named {port}")


def real_program(name: str) -> Optional[str]:
    """Return the program of the machine behind ours on the path."""
    directories = [*os.environ.get("PATH", "").split(os.pathsep), *_SBIN]
    others = [path for path in directories if not os.path.exists(os.path.join(path, MARK))]
    return shutil.which(name, path=os.pathsep.join(others))


_GIVEN: set[int] = set()


def free_port() -> int:
    """Return a TCP port of the machine on which nothing listens, each time another one."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in _GIVEN:
            _GIVEN.add(port)
            return port
