"""A database of Open vSwitch for the network of a script: the programs of Open vSwitch drive its switches.

```text
 ovs-vsctl ─▶ ovsdb-server ◀─▶ fastpath switch --ovsdb ◀─ s1.mgmt ─ ovs-ofctl
                                  │ packet sockets
                              s1-eth1, s1-eth2, …      TAP interfaces of the machine, whose other
                                  │                    ends are links of the lab
```

Server, switches and files belong to one script: they are in its directory, and end with it, also when it
is killed. Where a program of Open vSwitch is missing, `vsctl.py` and `ofctl.py` answer in its place.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, NoReturn, Optional

from fastpath.program import program

from . import remarks
from .network import real_program

# "1": every script has a database, "0": none has.
OPTION = "FASTPATH_MININET_OVSDB"
# The programs that a database needs.
NEEDED = ("ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl")
# Most bridges of a database.
SWITCHES_MAX = 256

_SUBDIRECTORY = "ovs"
_SCHEMA = "vswitch.ovsschema"
# Seconds that a command waits for server and switches unless it says how long.
_TIMEOUT_S = 30
# What ovs-vsctl says of a row that is not in force is in these columns.
_STATES = {"bridge": ("name", "status"), "port": ("name", "status"), "interface": ("name", "error", "status"),
           "controller": ("target", "status")}
# Commands of ovs-vsctl that change nothing.
_QUESTIONS = ("show", "list", "find", "get", "list-br", "br-exists", "br-to-vlan", "br-to-parent", "list-ports",
              "list-ifaces", "port-to-br", "iface-to-br", "get-controller", "get-fail-mode", "get-manager", "get-ssl",
              "wait-until", "br-get-external-id", "get-aa-mapping")
# What has no effect here and is not missed.
_UNMISSED = ("protocols:", "connection_mode", "enable_async_messages")
# Refusals of OpenFlow that say that the switch cannot do it.
_UNABLE = re.compile(r"OFPB(AC|IC|MC|RC)_\w+")
# Files of the directory: ports that the script was given without asking, texts that were said.
_GIVEN, _SAID = "given.json", "said.json"

# Server and switches end when standard input does: with its owner, whatever ends that.
_KEEPER = """
exec 3<&0 </dev/null
ovsdb=$1 switches=$2 directory=$3
"$ovsdb" --remote=punix:"$directory/db.sock" --remote=db:Open_vSwitch,Open_vSwitch,manager_options \\
    --private-key=db:Open_vSwitch,SSL,private_key --certificate=db:Open_vSwitch,SSL,certificate \\
    --ca-cert=db:Open_vSwitch,SSL,ca_cert --unixctl="$directory/ovsdb-server.ctl" --no-chdir \\
    --log-file=/dev/null "$directory/db" 3<&- >/dev/null 2>"$directory/server.log" & server=$!
"$switches" switch --ovsdb unix:"$directory/db.sock" 3<&- >/dev/null 2>"$directory/switches.log" & client=$!
exec 2>/dev/null
while read -r line <&3; do :; done
kill -TERM $client
wait $client
kill -TERM $server
wait $server
rm -rf "$directory"
"""


def programs() -> Optional[dict[str, str]]:
    """Return the paths of the programs of Open vSwitch and of its schema; `None` if one is missing."""
    found = {name: real_program(name) for name in NEEDED}
    found["schema"] = _schema(found["ovs-vsctl"])
    paths = {name: path for name, path in found.items() if path is not None}
    return paths if len(paths) == len(found) else None


def hint() -> str:
    """Return what to do about a command that our own ovs-vsctl refuses, or an empty text."""
    if programs() is None:
        return "; where Open vSwitch is installed, a script has a database that may have it"
    return "" if OPTION in os.environ else "; `python -m fastpath.mininet --ovsdb` gives a script a database that may have it"


def _schema(vsctl: Optional[str]) -> Optional[str]:
    """Return the schema that came with ovs-vsctl."""
    own = [Path(os.path.realpath(vsctl)).parent.parent / "share"] if vsctl else []
    for share in [*own, Path("/usr/local/share"), Path("/usr/share")]:
        path = share / "openvswitch" / _SCHEMA
        if path.is_file():
            return str(path)
    return None


class Database:
    """A running server and the switches that it describes."""

    def __init__(self, directory: str, paths: Mapping[str, str]) -> None:
        self.directory = os.path.join(directory, _SUBDIRECTORY)
        self._paths = paths
        os.mkdir(self.directory, 0o700)
        file = os.path.join(self.directory, "db")
        subprocess.run([paths["ovsdb-tool"], "create", file, paths["schema"]], check=True, stdout=subprocess.DEVNULL)
        words = ["/bin/sh", "-c", _KEEPER, "fastpath-ovsdb", paths["ovsdb-server"], program(), self.directory]
        # In a session of its own: Ctrl-C is for the script.
        self._keeper = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
        # The programs of Open vSwitch find server and bridges by it.
        os.environ["OVS_RUNDIR"] = self.directory
        self.vsctl("init")

    def vsctl(self, *words: str) -> str:
        """Run ovs-vsctl and return what it prints; raise with the reason if it fails."""
        command = [self._paths["ovs-vsctl"], "--retry", f"--timeout={_TIMEOUT_S}", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment())
        if done.returncode != 0:
            raise Exception(f"ovs-vsctl {' '.join(words)}: {done.stderr.strip()}{self._log()}")
        return done.stdout

    def ofctl(self, *words: str) -> str:
        """Run ovs-ofctl and return what it prints, errors included."""
        command = [self._paths["ovs-ofctl"], *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env=self._environment())
        return done.stdout

    def states(self) -> list[str]:
        """Return what of the database is not in force, and why. Commands do not repeat it."""
        found = states(self._paths["ovs-vsctl"], self._environment())
        _write(self.directory, _SAID, {text: True for text in found})
        return found

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "OVS_RUNDIR": self.directory}

    def _log(self) -> str:
        texts = [Path(self.directory, name).read_text(errors="replace")[-2000:]
                 for name in ("server.log", "switches.log") if os.path.exists(os.path.join(self.directory, name))]
        said = "".join(texts).strip()
        return f"\n{said}" if said else ""

    def give(self, ports: Mapping[str, str]) -> None:
        """Remember ports that were added without a command of the script, by port the bridge."""
        given = {**_read(self.directory, _GIVEN), **ports}
        _write(self.directory, _GIVEN, given)

    def clear(self) -> None:
        """Remove all bridges: their network has ended. Later commands find an empty database."""
        names = self.vsctl("list-br").split()
        words = [word for name in names for word in ("--", "--if-exists", "del-br", name)]
        self.vsctl(*words, "--", "--all", "destroy", "qos", "--", "--all", "destroy", "queue")
        for name in (_GIVEN, _SAID):
            _write(self.directory, name, {})

    def close(self) -> None:
        """End server and switches, and remove their files."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()
        os.environ.pop("OVS_RUNDIR", None)


def of_script(directory: str) -> Optional[str]:
    """Return the directory of the database of a script, if it has one."""
    path = os.path.join(directory, _SUBDIRECTORY)
    return path if os.path.exists(os.path.join(path, "db.sock")) else None


def run(directory: str, database: str, name: str, arguments: list[str]) -> NoReturn:
    """Run a program of Open vSwitch on the database, and tell the script what was not done."""
    real = real_program(name)
    if real is None:
        raise FileNotFoundError(name)
    environment = {**os.environ, "OVS_RUNDIR": database}
    if name == "ovs-vsctl" and _is_ours(arguments):
        code = _vsctl(directory, database, real, arguments)
    elif name == "ovs-ofctl":
        code = _ofctl(directory, real, arguments, environment)
    else:
        os.execve(real, [name, *arguments], environment)
    sys.exit(code)


def _is_ours(arguments: list[str]) -> bool:
    """Return whether a line of ovs-vsctl is for the database of the script."""
    return not any(word.startswith(("--db", "--version", "--help")) or word in ("-V", "-h") for word in arguments)


def _ofctl(directory: str, real: str, arguments: list[str], environment: dict[str, str]) -> int:
    done = subprocess.run([real, *arguments], stderr=subprocess.PIPE, text=True, check=False, env=environment)
    sys.stderr.write(done.stderr)
    if done.returncode == 0:
        return 0
    unable = _UNABLE.search(done.stderr)
    kind = remarks.UNSUPPORTED if unable else remarks.WARNING
    why = f"the switch refuses it ({unable.group()})" if unable else done.stderr.strip()
    remarks.write(directory, kind, f"ovs-ofctl: {' '.join(arguments)}: {why}" if unable else why)
    return done.returncode


def _vsctl(directory: str, database: str, real: str, arguments: list[str]) -> int:
    environment = {**os.environ, "OVS_RUNDIR": database}
    changes = _changes(arguments)
    # What is asked for is in force, or refused, when the command ends.
    words = [word for word in arguments if word != "--no-wait"] if changes else arguments
    if not any(word.startswith(("-t", "--timeout")) for word in words):
        words = [f"--timeout={_TIMEOUT_S}", *words]
    words = _asked_for(database, words)
    done = subprocess.run([real, *words], stderr=subprocess.PIPE, text=True, check=False, env=environment)
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        if done.stderr.strip():
            remarks.write(directory, remarks.WARNING, done.stderr.strip())
        return done.returncode
    if changes and not _tell(directory, database, real, environment):
        return 1
    return 0


def _changes(arguments: list[str]) -> bool:
    """Return whether a line has a command that changes something."""
    commands = []
    expects = True
    for word in arguments:
        if word == "--":
            expects = True
        elif expects and not word.startswith("-"):
            commands.append(word)
            expects = False
    return any(command not in _QUESTIONS for command in commands)


def _asked_for(database: str, words: list[str]) -> list[str]:
    """Let a line add a port that the script was given with its link, as if it had not been there."""
    given = _read(database, _GIVEN)
    found: list[str] = []
    for at, word in enumerate(words):
        bridge, port = (words[at + 1], words[at + 2]) if len(words) > at + 2 else ("", "")
        if word == "add-port" and given.get(port) == bridge:
            del given[port]
            options: list[str] = []
            while found and found[-1] in ("--may-exist", "--fake-iface"):
                options.insert(0, found.pop())
            found += [*_separator(found), "--if-exists", "del-port", bridge, port, "--", *options]
        found.append(word)
    _write(database, _GIVEN, given)
    return found


def _separator(found: list[str]) -> list[str]:
    return [] if not found or found[-1] == "--" else ["--"]


def _tell(directory: str, database: str, real: str, environment: dict[str, str]) -> bool:
    """Tell the script what of the database is not in force. Returns whether all is supported."""
    said: dict[str, Any] = _read(database, _SAID)
    found = states(real, environment)
    new = [text for text in found if text not in said]
    _write(database, _SAID, {text: True for text in found})
    missed = [text for text in new if "not supported" in text and not any(word in text for word in _UNMISSED)]
    # All is said before the first remark of these ends the script.
    sys.stderr.write("".join(f"ovs-vsctl: {text}\n" for text in new))
    sys.stderr.flush()
    for text in new:
        if text not in missed:
            remarks.write(directory, remarks.WARNING, f"ovs-vsctl: {text}")
    if missed:
        remarks.write(directory, remarks.UNSUPPORTED, f"ovs-vsctl: {'; '.join(missed)}")
    return not missed


def states(real: str, environment: dict[str, str]) -> list[str]:
    """Return what of the database is not in force, and why."""
    words = [real, f"--timeout={_TIMEOUT_S}", "--format=json"]
    for table, columns in _STATES.items():
        words += ["--", f"--columns={','.join(columns)}", "list", table]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    found, rest = [], done.stdout
    for table in _STATES:
        listed, end = json.JSONDecoder().raw_decode(rest)
        rest = rest[end:].lstrip()
        found += [f"{table} {text}" for row in listed["data"] for text in _refusals(dict(zip(listed["headings"], row)))]
    return found


def _refusals(row: Mapping[str, Any]) -> list[str]:
    """Return what of a row is not in force, with its name."""
    # A map is ["map", [[KEY, VALUE], …]], an empty column ["set", []].
    status = dict(row["status"][1])
    texts = [status.get("error"), status.get("unsupported"), row.get("error")]
    if str(status.get("last_error")).startswith(("target:", "table SSL")):
        texts.append(status["last_error"])
    name = row.get("name", row.get("target"))
    return [f"{name}: {text}" for text in texts if isinstance(text, str) and text]


def _read(directory: str, name: str) -> dict[str, Any]:
    try:
        with open(os.path.join(directory, name)) as file:
            found: dict[str, Any] = json.load(file)
            return found
    except FileNotFoundError:
        return {}


def _write(directory: str, name: str, values: Mapping[str, Any]) -> None:
    path = os.path.join(directory, name)
    # Commands may run at the same time.
    own = f"{path}.{os.getpid()}"
    with open(own, "w") as file:
        json.dump(values, file)
    os.replace(own, path)
