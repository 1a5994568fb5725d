import subprocess
import sys
from pathlib import Path

import pytest

CRATE = Path(__file__).parent.parent


def test_the_types_of_the_package_are_right(tmp_path):
    pytest.importorskip("mypy")
    words = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--no-error-summary"]
    done = subprocess.run(words, cwd=CRATE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
