"""Which switches of a script that learn addresses have flow tables."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from typing import Hashable, Iterable, TypeVar

# Set by `python -m fastpath.mininet --openflow`.
OPTION = "FASTPATH_MININET_OPENFLOW"

_FLOWS = re.compile(r"ovs-ofctl|dpctl|del-controller|set-fail-mode|fail[_-]mode=")
# Deleting all flows makes a switch learn again, which one without a table does too.
_RELEARN = re.compile(r"""dpctl\s*\(\s*['"]del-flows['"]\s*\)|ovs-ofctl\s+del-flows\s+[\w%{}.]+\s*['"]""")
_CLI = re.compile(r"\bCLI\s*\(|\.interact\s*\(")
_CHANGE = re.compile(r"\.(addLink|addHost|addSwitch|delLink|delNode|delHost|delSwitch|moveIntf)\s*\(")
_SHELL_FILE = re.compile(r"[\w./-]+\.sh\b")
_FILE_BYTES_MAX = 1 << 20
_TYPED_MAX = 64

_DATABASE = re.compile(r"ovs-vsctl|ovsdb|\bvsctl\s*\(")

T = TypeVar("T", bound=Hashable)


def speaks_of_database() -> bool:
    """Return whether the script has commands for the database of Open vSwitch."""
    return any(_DATABASE.search(text) for text in _texts())


def switches_with_flows_max() -> int:
    """Return in networks of how many switches those that learn have flow tables.

    Each has an agent, so a prompt at which flows may be typed does not suffice in large networks.
    """
    if OPTION in os.environ:
        return sys.maxsize
    most = 0
    for text in _texts():
        start = text.find(".start()")
        changes_later = start >= 0 and (_CHANGE.search(text, start) or ".moveIntf(" in text)
        if _FLOWS.search(_RELEARN.sub("", text) if changes_later else text):
            return sys.maxsize
        if _CLI.search(text) and not changes_later:
            most = _TYPED_MAX
    return most


def _texts() -> Iterable[str]:
    """Return the texts of the script, of its own modules, and of the shell scripts that they name."""
    main = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else ""
    directory = os.path.dirname(main)
    modules = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    own = [file for file in modules if directory and os.path.dirname(os.path.abspath(file)) == directory]
    for file in dict.fromkeys([main, *own]):
        text = _read(file)
        yield text
        for name in _SHELL_FILE.findall(text):
            yield _read(name)
            yield _read(os.path.join(directory, name))


def _read(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read(_FILE_BYTES_MAX)
    except OSError:
        return ""


def in_rings(links: Iterable[tuple[T, T]]) -> set[T]:
    """Return the nodes that stay when nodes with one link are removed again and again."""
    left = list(links)
    while True:
        degree = Counter(node for link in left for node in link)
        kept = [link for link in left if min(degree[node] for node in link) > 1]
        if len(kept) == len(left):
            return set(degree)
        left = kept
