"""The notebook in examples does what it says."""

from __future__ import annotations

import pathlib

import nbclient
import nbformat

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"


def test_the_notebook_runs():
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    # A cell that fails is an error here; the last one checks the result.
    nbclient.NotebookClient(notebook, timeout=120).execute()
    assert any("cleo@c.org" in str(cell.get("outputs")) for cell in notebook.cells)
