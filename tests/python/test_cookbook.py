"""Every block of code in the pages that show how to do something, and the notebooks: files are written, commands and
Python are run.

The blocks of a page are run in order, in one folder, with the repository's `examples` beside them. A block of TOML, CSV
or text is a file if its first line names it: ```toml title="spine.toml"; ```text without a title is what something
says, and is not run.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from called import call
from clearway.reports import report
from clearway.sweeps import page as page_of_sweeps

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "start.md", ROOT / "docs" / "coming-from.md", *sorted((ROOT / "docs/cookbook").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)
# Commands that are not run, and why.
NOT_HERE = {
    "pip install .": "the tests run in an environment that has it",
    "clearway sweep slurm.toml --cluster": "there is no Slurm",
    "clearway sweep grid.toml --dask tcp://head:8786": "there is no such scheduler",
    "dask scheduler": "likewise",
    "dask worker tcp://head:8786 --nworkers 16 --nthreads 1": "likewise",
}


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """The language, the file's name and the content of each block of a page."""
    text = page.read_text()
    found = BLOCK.findall(text)
    assert len(found) * 2 == len(re.findall(r"^ *```", text, re.M)), f"{page} has a block that no test reads"
    return found


def commands(text: str) -> list[str]:
    """The commands of a block, without comments."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.join(words) for line in lines if (words := shlex.split(line, comments=True))]


def _no_report(_: object, path: Path, *_said: object) -> Path:
    path.write_text("", encoding="utf-8")
    return path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    # Report pages have tests of their own, and would take most of the time here.
    for module in (report, page_of_sweeps):
        monkeypatch.setattr(module, "write", _no_report)
    names: dict[str, object] = {"__name__": "page"}
    for number, (language, title, text) in enumerate(blocks(page), 1):
        where = f"{page.name}, block {number}"
        if title:
            Path(title).write_text(text)
        elif language == "sh":
            for command in commands(text):
                if command in NOT_HERE:
                    continue
                words = shlex.split(command)
                assert words[0] == "clearway", f"{where}: {command} is neither run nor in NOT_HERE"
                done = call(*words[1:])
                assert done.code == 0, f"{where}: {command}\n{done.out}{done.err}"
        elif language == "python":
            exec(compile(text, where, "exec"), names)
        else:
            assert language == "text", f"{where}: {language} is neither run nor written to a file"


def test_what_is_not_run_is_on_some_page() -> None:
    shown = {command for page in PAGES for kind, _, text in blocks(page) if kind == "sh" for command in commands(text)}
    assert set(NOT_HERE) <= shown


@pytest.mark.parametrize("notebook", sorted((ROOT / "examples/notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "write", _no_report)
    cells = json.loads(notebook.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 4 and not any(cell.get("outputs") for cell in cells)
    names: dict[str, object] = {"__name__": "__main__"}
    for number, text in enumerate(code, 1):
        exec(compile(text, f"{notebook.name}, cell {number}", "exec"), names)
    plt.close("all")
