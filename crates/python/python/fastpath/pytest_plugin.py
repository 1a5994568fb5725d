"""The pytest fixture ``fastpath_network``: networks in virtual time for tests of protocol stacks.

The wheel registers it. A test that fails keeps the captures of its networks; its report names them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Union

import pytest

if TYPE_CHECKING:
    from fastpath import Topology
    from fastpath.aio import VirtualNetwork

__all__ = ["NetworkFactory", "fastpath_network"]

_NAME = "fastpath captures"


class NetworkFactory:
    """Makes the networks of a test: ``fastpath_network(topology, seed=1)``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made: list[tuple[VirtualNetwork, Path]] = []

    def __call__(
        self, topology: Union[Topology, str, os.PathLike[str]], *, seed: int = 1, **options: Any
    ) -> VirtualNetwork:
        """Make a network, and capture all of its hosts.

        Parameters
        ----------
        topology, seed, options
            As those of :class:`fastpath.aio.VirtualNetwork`.
        """
        from fastpath.aio import VirtualNetwork

        network = VirtualNetwork(topology, seed=seed, **options)
        path = self._directory / f"network-{len(self._made) + 1}.pcapng"
        network.capture(path)
        self._made.append((network, path))
        return network

    def _report(self) -> str:
        """Return what a report of a failure says of the networks."""
        lines = []
        for network, path in self._made:
            network._native.flush()
            lines.append(f"{path}: seed {network.seed}, until {network.now_ps / 10**12} s")
        return "\n".join(lines)


@pytest.fixture
def fastpath_network(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NetworkFactory]:
    """Make networks in virtual time: ``fastpath_network(topology_or_toml, seed=1).run(main())``.

    Every packet at the hosts is captured. The captures of a test that fails are kept, and named in
    its report.
    """
    directory = tmp_path_factory.mktemp("fastpath")
    factory = NetworkFactory(directory)
    request.node._fastpath_network = factory
    yield factory
    if not getattr(request.node, "_fastpath_failed", False):
        shutil.rmtree(directory, ignore_errors=True)


# The old form of wrappers: older versions of pytest know no other.
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Name the captures in the report of a failure."""
    report: pytest.TestReport = (yield).get_result()
    factory = getattr(item, "_fastpath_network", None)
    if factory is not None and report.when == "call" and report.failed and factory._made:
        item._fastpath_failed = True  # type: ignore[attr-defined]
        report.sections.append((_NAME, factory._report()))
