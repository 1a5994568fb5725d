"""The Python blocks of the documentation run, page by page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ["docs/guides/notebooks.md", "docs/guides/protocol-stacks.md"]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_in_their_order(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.S | re.M)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_what_the_guide_says_of_specs_runs() -> None:
    text = next((ROOT / "docs").rglob("python.md")).read_text()
    [block] = re.findall(r"^## Everything else of a spec\n\n```python\n(.*?)^```$", text, re.S | re.M)
    names: dict[str, object] = {}
    exec(compile(block, "python.md", "exec"), names)
    assert len(names["out"]) > 0  # type: ignore[arg-type]
