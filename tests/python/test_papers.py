"""The papers as a command and a package: what it lists, what it says of a typo, records, and pages."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import clearway as cw
import pandas as pd
import pytest
import typer
from called import call
from clearway import papers
from clearway.cli.main import app
from clearway.papers import accuracy, figures, records, slices
from clearway.papers._paper import Options, Paper
from clearway.sweeps.file import tomllib

ROOT = Path(__file__).parents[2]
TESTBED = ROOT / "python/clearway/papers/harmony/testbed.toml"
ALL = [papers.paper(name) for name in [*papers.PAPERS, *papers.RIVALS]]


def test_the_command_lists_the_five_papers_and_their_figures() -> None:
    done = call("paper")
    assert done.code == 0
    for of in ALL:
        assert f"{of.name}: {of.title}" in done.out
        assert all(f"  {figure} " in done.out for figure in of.figures)
    one = call("paper", "pyrrha")
    assert one.code == 0 and "figure-11" in one.out and "  table-2 " not in one.out


def test_a_figure_is_run_drawn_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("paper", "harmony", "figure-4", "theory")
    assert done.code == 0, done.err
    assert "pass" in done.out and "FAIL" not in done.out
    assert {path.name for path in (tmp_path / "out/harmony").iterdir()} == {
        "figure-4.csv",
        "figure-4.png",
        "theory.csv",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("harmny",), "did you mean 'harmony'?"),
        (("harmony", "figure-5x"), "did you mean 'figure-5d'?"),
        (("harmony", "theory", "--only", "HPCC"), "its options are --in-turn, --scale"),
        (("dcpim", "figure-7", "--only", "HPC"), "did you mean 'HPCC'?"),
        (("harmony", "theory", "--scale", "0"), "--scale 0: must be above 0"),
        (("harmony", "theory", "--all"), "name none"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(words: tuple[str, ...], said: str) -> None:
    done = call("paper", *words)
    assert done.code == 2 and said in done.err, done.err


def test_a_check_that_fails_is_an_exit_status(tmp_path: Path) -> None:
    # The table of congestion roots takes less than in the paper.
    assert call("paper", "pyrrha", "tables-4-7", "--out", str(tmp_path)).code == 1


def test_what_figures_need_is_in_the_package(tmp_path: Path) -> None:
    """From a copy of the package alone, as a wheel has it: scenarios and reference data are in it."""
    package = tmp_path / "site" / "clearway"
    shutil.copytree(ROOT / "python/clearway", package, ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        f"import sys; sys.path.insert(0, {str(package.parent)!r})\n"
        "import clearway; from clearway.cli.main import main\n"
        f"assert clearway.__file__.startswith({str(package)!r}), clearway.__file__\n"
        "sys.argv = ['clearway', 'paper', 'harmony', *sys.argv[1:]]\nmain()\n"
    )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)

    done = run("counterexample", "figure-1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/harmony/counterexample.png").exists()
    refused = run("theory", "--write")
    assert refused.returncode == 2 and "installed without it" in refused.stderr


def test_no_figure_needs_a_compiler() -> None:
    calling = [path for path in (ROOT / "python/clearway/papers").rglob("*.py") if "cargo" in path.read_text()]
    assert calling == [], "the module has what a figure needs: crates/python"


def test_sizes_beside_harmony_s_figures_are_those_of_the_engine() -> None:
    for name in ("websearch_dcpim.txt", "imc10_dcpim.txt"):
        ours = ROOT / "python/clearway/papers/harmony" / name
        assert ours.read_bytes() == (ROOT / "crates/workload/data" / name).read_bytes()


def shown() -> figures.Shown:
    table = pd.DataFrame({"a|b": [1.23456789, float("nan")], "n": [12_345, 2]}, index=pd.Index(["x", "y"], name="row"))
    rows = pd.DataFrame([("all", "mean", 1.3, 1.0, 0.25)], columns=list(figures.Held.COLUMNS))
    held = [figures.Held("tcp", "a law", "paper", rows)]
    return figures.Shown(table, {"it holds": True}, None, held, "The paper prints no number.")


def made(of: Paper, figure: str) -> dict[str, Any]:
    ran = figures.Ran()
    for seed in (1, 2):
        ran.add({"digest": f"d{seed}", "seed": seed, "cpu_seconds": 2.0, "wall_seconds": 1.0}, f"run {seed}", "toml")
    return records.make(of, figure, shown(), ran, Options(scale=0.5), (0.0, 0.0))


def test_a_record_says_what_ran_and_what_came_out(tmp_path: Path) -> None:
    of = papers.paper("pyrrha")
    record = made(of, "figure-11")
    records.save(record, tmp_path)
    assert records.load(tmp_path) == {("pyrrha", "figure-11"): record}
    text = records.render(record, "pyrrha", "figure-11")
    assert "| tcp: all, mean | 1 | 1.3 | +30.0% | 25% | **fails** |" in text
    assert "\n\nThe paper prints no number.\n\n" in text
    assert "- holds: it holds" in text and "| x | 1.235 | 12,345 |" in text and "| y | - | 2 |" in text
    said = text.replace("\n", " ")
    assert "`clearway paper pyrrha figure-11 --scale 0.5`: commit" in said
    assert "seeds 1, 2; 2 runs, digest" in said and "4 s of CPU" in said
    # The digest is of all runs, whatever their order.
    other = figures.Ran()
    for digest in ("d2", "d1", "d2"):
        other.add({"digest": digest}, "run", "toml")
    assert other.digest == record["digest"] != ""


def test_the_command_of_every_record_runs_its_figure_with_its_options() -> None:
    command = typer.main.get_command(app).commands["paper"]
    for (name, figure), record in records.load(ROOT).items():
        words = shlex.split(records.command(record))
        assert words[:2] == ["clearway", "paper"]
        given = command.make_context("paper", words[2:]).params
        assert (given["name"], given["figures"]) == (name, [figure])
        of, only = papers.paper(name), tuple(given["only"] or ())
        options = Options(given["scale"], given["seeds"], only, given["in_turn"])
        assert options.words == record["options"]
        # A scheme that the figures do not have is an error.
        of.use(options)
        of.use(Options())


def test_a_page_has_what_its_records_say_and_says_what_has_not_run() -> None:
    of = papers.paper("pyrrha")
    empty = "a\n<!-- pyrrha figure-11: begin -->\n<!-- pyrrha figure-11: end -->\nb\n"
    text = records.filled(empty, {})
    assert "Not yet run on this build: `clearway paper pyrrha figure-11`." in text
    record = made(of, "figure-11")
    written = records.filled(text, {("pyrrha", "figure-11"): record})
    assert written.startswith("a\n<!-- ") and written.endswith(" -->\nb\n") and "1.3" in written
    assert records.filled(written, {("pyrrha", "figure-11"): record}) == written
    with pytest.raises(ValueError, match="there is no such figure"):
        records.filled(empty.replace("figure-11", "figure-99"), {})


def test_no_page_has_gone_stale() -> None:
    known = records.load(ROOT)
    stale = [str(page) for page in records.pages(ROOT) if records.filled(page.read_text(), known) != page.read_text()]
    text = accuracy.page(accuracy.records(ROOT), accuracy.schemes_known())
    if text != (ROOT / accuracy.PAGE).read_text():
        stale.append(str(accuracy.PAGE))
    assert stale == [], "written by `clearway paper ... --write`, never by hand"


def test_each_comparison_of_the_accuracy_page_has_its_command_and_is_a_click_away() -> None:
    text = accuracy.page(accuracy.records(ROOT), accuracy.schemes_known())
    line = r"^\|.*`(clearway paper [^`]*)`(?:, older protocol)? \| \[(\d+)\]\(#([\w-]+)\) \|.*$"
    rows = re.findall(line, text, re.MULTILINE)
    assert len(rows) == text.count("\n## ") > 100
    for command, numbers, anchor in rows:
        section = text.partition(f'<a id="{anchor}"></a>')[2].partition("<a id=")[0]
        assert f"`{command}`" in section and section.count("\n|") == int(numbers) + 2


def test_every_figure_stands_on_a_page_and_every_record_is_of_a_figure() -> None:
    text = "".join(page.read_text() for page in records.pages(ROOT))
    there = {(of, figure) for of, figure, _ in records.MARK.findall(text)}
    # Comparisons with laws stand on the page of accuracy.
    wanted = {(of.name, figure) for of in ALL for figure in of.figures if of.name != "closed-forms"}
    assert there == wanted
    known = {(of.name, figure) for of in ALL for figure in of.figures}
    for path in (ROOT / records.FOLDER).glob("*.json"):
        record = json.loads(path.read_text())
        assert (record["paper"], record["figure"]) in known and path.name == records.name_of(record)


RECORDED = sorted(path.stem for path in (ROOT / records.FOLDER).glob("*.json"))


@pytest.mark.parametrize("name", RECORDED)
def test_a_slice_of_each_record_has_the_digests_of_today(name: str) -> None:
    """A record that a page says to be of an older protocol is left out; `clearway paper --stale --write` marks it."""
    [record] = [one for one in records.load(ROOT).values() if records.name_of(one) == f"{name}.json"]
    if not record.get("older"):
        why = records.differs(record)
        assert why == "", f"{why}; make the record anew: {records.command(record)} --write"


def kept(at: Path, figure: str, **changed: Any) -> dict[str, Any]:
    """A record of one of Harmony's figures in a checkout, with its slice of today."""
    record = {**made(papers.paper("harmony"), figure), "options": [], **changed}
    record.setdefault("slice", slices.of_figure(papers.paper("harmony"), figure, Options()).pieces)
    records.save(record, at)
    return record


def test_a_record_is_stale_once_a_run_of_it_or_its_scenario_or_its_request_changes(tmp_path: Path) -> None:
    record = kept(tmp_path, "counterexample")
    assert len(record["slice"]) == 2 and records.differs(record) == ""
    for key, value, said in (
        ("digest", "0" * 32, "and its record has 000"),
        ("end_us", 8, "and its record has"),
        ("of", "another", "the figure asks for"),
    ):
        other = {**record, "slice": [record["slice"][0], {**record["slice"][1], key: value}]}
        assert said in records.differs(other), key
    # A run that the figure doesn't come to ask for, since it can't read a result of little time.
    more = slices.of_figure(
        papers.paper("harmony"), "counterexample", Options(), asked={"new": cw.Scenario.load(TESTBED)}
    ).pieces
    assert more[2]["file"] == "harmony/testbed.toml" and more[2]["end_us"] is not None
    assert records.differs({**record, "slice": more}) == ""
    more[2] = {**more[2], "sets": [["seed", "7"]]}
    assert ": digest " in records.differs({**record, "slice": more})
    assert records.differs({**record, "slice": []}) == "has no slice yet"


def test_stale_records_are_listed_marked_on_their_pages_and_made_anew_cheapest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "papers" / "harmony" / "README.md"
    page.parent.mkdir(parents=True)
    region = "<!-- harmony {0}: begin -->\n<!-- harmony {0}: end -->\n".format
    page.write_text("".join(map(region, ("lone", "theory", "figure-1"))))
    monkeypatch.setattr(records, "root", lambda: tmp_path)
    monkeypatch.setattr(accuracy, "write", lambda at: page)
    monkeypatch.setattr(records, "shown_pictures", lambda of, at: {})
    kept(tmp_path, "figure-1")
    kept(tmp_path, "lone", cpu_seconds=7200.0, slice=[{"of": "a", "end_us": None, "digest": "0"}])
    kept(tmp_path, "theory", cpu_seconds=3600.0, slice=[])
    monkeypatch.chdir(tmp_path)
    done = call("paper", "harmony", "--stale")
    assert done.code == 1, done.err
    assert done.out.index("harmony theory --write") < done.out.index("harmony lone --write")
    assert "2 records are stale; to make them anew takes about 3.0 h of CPU: clearway paper harmony --all" in done.out
    assert "Older protocol" not in page.read_text()
    assert call("paper", "harmony", "--stale", "--write").code == 1
    assert page.read_text().count("**Older protocol**") == 2
    assert [figure for (_, figure), one in records.load(tmp_path).items() if one.get("older")] == ["lone", "theory"]
    done = call("paper", "harmony", "--stale", "--write", "--all")
    assert done.code == 0, done.err
    assert done.err.index("harmony theory: 1 of 2") < done.err.index("harmony lone: 2 of 2")
    assert "Older protocol" not in page.read_text()
    done = call("paper", "harmony", "--stale")
    assert done.code == 0 and "0 records are stale" in done.out
    again = records.load(tmp_path)["harmony", "lone"]
    assert again["runs"] == len({digest for *_, digest in again["behind"]}) > 5
    kept(tmp_path, "lone", slice=[])
    kept(tmp_path, "theory", slice=[])

    def broken() -> figures.Shown:
        raise TypeError("cannot")

    monkeypatch.setitem(dict_of(papers.paper("harmony").figures), "theory", broken)
    done = call("paper", "harmony", "--stale", "--write", "--all")
    assert done.code == 1 and "error: harmony theory: TypeError: cannot" in done.err
    assert [figure for (_, figure), one in records.load(tmp_path).items() if one.get("older")] == ["theory"]
    refused = call("paper", "harmony", "lone", "--stale")
    assert refused.code == 2 and "name no figure" in refused.err


# How many figures and tables each paper has.
PRINTED = {"dcpim": (7, 1), "augmented-queue": (12, 4), "pyrrha": (32, 7), "harmony": (8, 0), "r2c2": (19, 0)}


@pytest.mark.parametrize("name", papers.PAPERS)
def test_each_figure_and_table_of_a_paper_is_run_or_its_page_says_what_it_is(name: str) -> None:
    of = papers.paper(name)
    figures_of, tables_of = PRINTED[name]
    # "figure-3", "figure-5ab", and "tables-4-7" for 4 to 7.
    known = {key.rstrip("abcd") for key in (*of.figures, *of.absent)}
    if "tables-4-7" in known:
        known |= {f"table-{number}" for number in range(4, 8)}
    printed = [f"figure-{1 + at}" for at in range(figures_of)] + [f"table-{1 + at}" for at in range(tables_of)]
    assert [key for key in printed if key not in known] == []
    said = " ".join(" ".join((ROOT / page).read_text() for page in of.pages).split())
    for key in of.absent:
        kind, number = key.split("-")
        named = rf"\b{kind.title()}s?( \w+,| \w+ and| \w+)* {number}\b"
        assert re.search(named, said), f"the page does not say what {key} is"
    listed = call("paper", name).out
    assert all(f"({key}: {why})" in listed for key, why in of.absent.items())


@pytest.mark.parametrize("name", papers.PAPERS)
def test_the_code_of_each_figure_holds_it_from_both_sides_or_says_that_the_paper_gives_no_number(name: str) -> None:
    """Of the code, since a record of an older protocol has the checks of then."""
    of = papers.paper(name)

    def text(function: Any, seen: set[Any]) -> str:
        """The source of a function and of those of its paper that it calls."""
        seen.add(function)
        where = inspect.getmodule(function)
        called = [getattr(where, word, None) for word in function.__code__.co_names]
        inner = [
            one
            for one in called
            if inspect.isfunction(one) and one not in seen and one.__module__.startswith(f"clearway.papers.{name[:4]}")
        ]
        return inspect.getsource(function) + "".join(text(one, seen) for one in inner)

    bare = [
        figure
        for figure, function in of.figures.items()
        if re.match(r"(figure|tables?)-\d", figure)
        if not re.search(r"\b(Held|held|against_paper|of_both)\(|\bnote ?=", text(function, set()))
    ]
    assert bare == [], "give the figure rows of `Held`, or a `note`"


def test_no_allowance_of_a_paper_lets_zero_pass() -> None:
    loose = [
        f"{record['paper']} {record['figure']}: {check['statement']}"
        for record in records.load(ROOT).values()
        if record["paper"] in papers.PAPERS
        for check in record["checks"]
        if check.get("within", 0) >= 1
    ]
    assert loose == [], "what lets 0 pass is no check from below"


def test_every_figure_and_table_is_held_from_both_sides_or_its_page_says_that_the_paper_gives_no_number() -> None:
    bare = [
        f"{record['paper']} {record['figure']}"
        for record in records.load(ROOT).values()
        if record["paper"] in papers.PAPERS and re.match(r"(figure|tables?)-\d", record["figure"])
        # Of an older protocol: its checks are of then, too.
        if not (record.get("older") or record.get("note") or any("paper" in check for check in record["checks"]))
    ]
    assert bare == [], "give the figure rows of `Held`, or a `note`"


def dict_of(known: figures.Figures) -> dict[str, Any]:
    assert isinstance(known, dict)
    return known


def test_options_are_those_of_their_words() -> None:
    for options in (Options(), Options(0.5, 5, ("NDP", "Homa Aeolus"), True)):
        assert Options.of(options.words) == options


# A figure or two of each paper that take some seconds each.
SAMPLE = [
    ("harmony", "theory"),
    ("harmony", "lone"),
    ("harmony", "counterexample"),
    ("harmony", "figure-1"),
    ("r2c2", "arithmetic"),
    ("r2c2", "figure-2"),
    ("r2c2", "linear-programs"),
    ("pyrrha", "figure-10"),
    ("pyrrha", "figure-31"),
    ("augmented-queue", "figure-1"),
    ("augmented-queue", "figure-12"),
    ("dcpim", "departures-imc10"),
    ("dcpim", "theorem-1"),
    ("phost", "reference"),
    ("ndp", "reference"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "figure"), SAMPLE)
def test_a_figure_that_is_run_again_gives_its_record(name: str, figure: str, tmp_path: Path) -> None:
    of = papers.paper(name)
    kept = records.load(ROOT).get((name, figure), {"older": True})
    if kept.get("older"):
        pytest.skip(f"not yet run on this build: clearway paper {name} {figure} --write")
    of.use(Options(out=tmp_path))
    with figures.listened() as ran:
        again = records.make(of, figure, of.figures[figure](), ran, Options(), (0.0, 0.0))
    of.use(Options())
    assert again["digest"] == kept["digest"], "packets move that did not: clearway paper --all --write"
    assert again["table"] == kept["table"] and again["checks"] == kept["checks"]


@pytest.mark.parametrize("figure", [("ndp", "reference"), ("dcpim", "reference"), ("pyrrha", "reference")])
def test_without_the_data_of_the_authors_a_figure_says_in_one_line_how_to_get_it(
    tmp_path: Path, figure: tuple[str, str]
) -> None:
    # The package as its wheel has it: all but the folders that the distribution clearway-papers brings.
    package = Path(cw.__file__).parent
    (tmp_path / "clearway").mkdir()
    for path in package.iterdir():
        if path.name not in ("papers", "__pycache__"):
            (tmp_path / "clearway" / path.name).symlink_to(path)
    leave = shutil.ignore_patterns("reference", "__pycache__")
    shutil.copytree(package / "papers", tmp_path / "clearway" / "papers", ignore=leave)
    done = subprocess.run(
        [sys.executable, "-m", "clearway", "paper", *figure],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "pip install clearway[papers]" in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_second_distribution_has_each_folder_that_the_wheel_leaves_out() -> None:
    brought = tomllib.loads(Path("python/papers/pyproject.toml").read_text())
    included = brought["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, target in included.items():
        assert (Path("python/papers") / source).resolve() == Path("python", target).resolve()
    assert set(included.values()) == {
        str(path.relative_to("python")) for path in Path("python/clearway/papers").glob("*/reference")
    }
    [left_out] = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["maturin"]["exclude"]
    assert left_out == {"path": "python/clearway/papers/*/reference/*", "format": "wheel"}
