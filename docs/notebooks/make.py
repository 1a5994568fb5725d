"""Runs the notebooks of this directory: `cargo xtask notebooks`.

Each notebook is written as NAME.py, with a line `# %%` before each cell and `# %% [markdown]` before
each cell of text. NAME.ipynb has the cells and their results.
"""

import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HERE = Path(__file__).parent
NAMES = ["first-link", "queues", "cellular-trace", "cores-for-100g", "ixp1200"]
TIMEOUT_S = 600
OUTPUT_BYTES_MAX = 100_000
# Figures as SVG, equal in equal runs.
SETUP = """\
import logging, matplotlib, matplotlib_inline.backend_inline as inline
logging.disable(logging.WARNING)
inline.set_matplotlib_formats("svg", metadata={"Date": None})
matplotlib.rcParams.update({"svg.hashsalt": "fastpath", "figure.figsize": (6.4, 3.2), "axes.grid": True,
                            "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False})
"""


def cells(source):
    for piece in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        head, _, body = piece.partition("\n")
        if "[markdown]" in head:
            yield new_markdown_cell(re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE))
        else:
            yield new_code_cell(body.strip())


def make(name):
    notebook = new_notebook(cells=[new_code_cell(SETUP), *cells((HERE / f"{name}.py").read_text())])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata["kernelspec"] = kernel
    NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name="python3").execute()
    del notebook.cells[0]
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"{name}-{index}"
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell.execution_count = index
            for output in cell.outputs:
                output.pop("execution_count", None)
                if output.output_type == "execute_result":
                    output["execution_count"] = index
                size = len(str(output))
                if size > OUTPUT_BYTES_MAX:
                    sys.exit(f"{name}: an output of {size} bytes; at most {OUTPUT_BYTES_MAX} are wanted")
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, HERE / f"{name}.ipynb")


def main():
    for name in sys.argv[1:] or NAMES:
        before = time.monotonic()
        make(name)
        print(f"{name}.ipynb: {time.monotonic() - before:.1f} s")


if __name__ == "__main__":
    main()
