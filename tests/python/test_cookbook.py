"""Every block of code of every page, and the notebooks: files are written, commands are typed, Python is run.

The blocks of a page are run in order, in one folder, with the repository's `examples` beside them.

- A block of TOML, CSV or text is a file if its first line names it: ```toml title="spine.toml".
- Other TOML is a piece of a scenario. It must load; where a key comes twice, its lines are alternatives.
- A command is run as it stands. Commands that take long (LONG) are only parsed, with each argument and option;
  programs that are not Clearway's (OTHERS) are not run. Each has its reason.
- ```text is output, and ```rust is compiled by the tests of `clearway new transport`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import clearway as cw
import matplotlib.pyplot as plt
import pytest
import typer
from called import call
from clearway.cli.main import app
from clearway.reports import report
from clearway.sweeps import page as page_of_sweeps

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^ *```", re.M)
FOUND = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "papers").rglob("*.md")]
# The list of commands is written from --help.
PAGES = sorted(page for page in FOUND if FENCE.search(page.read_text()) and page.name != "commands.md")
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)
# The traffic that a piece of a scenario needs beside it.
SENDS = re.compile(r"^\[\[(traffic|job)\]\]", re.M)
TRAFFIC = '\n[[traffic]]\nname = "any"\nsizes = { constant = "1KB" }\narrivals = "all_at_once"\n'
# By their beginnings, with the reason.
LONG = {
    "clearway paper ": "minutes to hours",
    "clearway compare --all": "minutes to hours",
    "clearway against ns3": "needs ns-3; test_against.py has another program in its place",
    "clearway calibrate all_reduce.log": "needs logs of a cluster; test_calibrate.py has some",
    "clearway run python/clearway/papers/": "minutes",
    "clearway compare python/clearway/papers/": "minutes",
    "clearway advise examples/cluster.toml": "takes ten minutes",
    "clearway live ": "lives until its other end comes, or needs root",
    "clearway sweep slurm.toml --cluster": "there is no Slurm",
    "clearway sweep grid.toml --dask tcp://head:8786": "there is no such scheduler",
    "clearway trust .": "compiles for minutes; test_own.py does all of it",
    "clearway run scenario.toml": "runs the crate that is compiled there",
    "clearway compare scenario.toml --transport mine": "likewise",
    "clearway new transport mine": "test_own.py does it",
}
OTHERS = {
    "pip install .": "the tests run in an environment that has it",
    "make ": "a target of the Makefile",
    "python -m venv ": "installs from a registry",
    "cargo ": "compiles for minutes",
    "uv pip compile ": "asks a registry",
    "dask ": "runs for ever",
    "openssl rand ": "not everywhere",
    "ip netns ": "needs root",
    "kill ": "ends what was not begun",
    "tshark ": "not everywhere",
    "clearway-aq ": "needs root and a device",
    "install ": "writes to the machine",
    "systemctl ": "needs systemd",
    "curl ": "asks a daemon",
    "sudo ": "needs root",
    "cd ": "leads to the crate",
}


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """The language, the file's name and the content of each block of a page."""
    text = page.read_text()
    found = BLOCK.findall(text)
    assert len(found) * 2 == len(FENCE.findall(text)), f"{page} has a block that no test reads"
    return found


def commands(text: str) -> list[str]:
    """The commands of a block, without comments."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.join(words) for line in lines if (words := shlex.split(line, comments=True))]


def _no_report(_: object, path: Path, *_said: object) -> Path:
    path.write_text("", encoding="utf-8")
    return path


def alternatives(text: str) -> Iterator[str]:
    """The scenarios that a piece of TOML stands for: where a key comes again, it replaces its line."""
    parts: dict[str, str] = {}
    table, lines = "", text.splitlines(keepends=True)
    place = 0
    while place < len(lines):
        statement = lines[place]
        while (plain := re.sub(r"#.*", "", statement)) and plain.count("[") + plain.count("{") > plain.count(
            "]"
        ) + plain.count("}"):
            place += 1
            statement += lines[place]
        place += 1
        if statement.startswith("["):
            table = f"{place} {statement.split(']')[0]}"
        name = statement.split("=")[0].strip() if "=" in statement and not statement.startswith(("[", "#")) else ""
        if name and not table and name in parts:
            yield "".join(parts.values())
        parts[f"{table} {name or place}" if table or not name else name] = statement
    yield "".join(parts.values())


def parses(command: str) -> None:
    """Fails if a command has an argument or option that it doesn't take."""
    words = shlex.split(command)[1:]
    words = [word for word in words if word != "&"]
    group = typer.main.get_command(app)
    context = group.make_context("clearway", [words[0], *words[1:]], resilient_parsing=True)
    name, inner, rest = group.resolve_command(context, words)
    assert inner is not None, command
    while hasattr(inner, "resolve_command"):
        context = inner.make_context(name, rest, parent=context, resilient_parsing=True)
        name, inner, rest = inner.resolve_command(context, rest)
    context = inner.make_context(name, [], parent=context, resilient_parsing=True)
    context.resilient_parsing = False
    inner.make_parser(context).parse_args(args=list(rest))


def typed(command: str, where: str) -> None:
    """Runs a command, or parses it if it takes long."""
    if command.startswith(tuple(OTHERS)):
        return
    assert command.startswith("clearway "), f"{where}: {command} is neither Clearway's nor in OTHERS"
    if command.startswith(tuple(LONG)):
        parses(command)
        return
    done = call(*shlex.split(command)[1:])
    assert done.code == 0, f"{where}: {command}\n{done.out}{done.err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix())
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
            if language == "python":
                compile(text, where, "exec")
        elif language == "sh":
            for command in commands(text):
                typed(command, where)
        elif language == "python":
            exec(compile(text, where, "exec"), names)
        elif language == "toml":
            for scenario in alternatives(text):
                Path("piece.toml").write_text(scenario + ("" if SENDS.search(scenario) else TRAFFIC))
                cw.Scenario.load("piece.toml")
        else:
            assert language in ("text", "rust"), f"{where}: {language} is neither run nor written to a file"


def test_each_command_that_is_not_run_is_on_some_page_and_wrong_options_are_found() -> None:
    shown = [command for page in PAGES for kind, _, text in blocks(page) if kind == "sh" for command in commands(text)]
    assert [start for start in (*LONG, *OTHERS) if not any(command.startswith(start) for command in shown)] == []
    with pytest.raises(Exception, match="--wurk"):
        parses("clearway compare --all --wurk training")
    assert list(alternatives("a = 1\n[b]\nc = 2\n")) == ["a = 1\n[b]\nc = 2\n"]
    assert list(alternatives("a = 1\na = [\n2]\n")) == ["a = 1\n", "a = [\n2]\n"]


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
