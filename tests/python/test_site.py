"""The documentation: links between pages, pages that are written by programs, and the site that `make docs` builds."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import browser
import clearway as cw
import command_docs
import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "papers").rglob("*.md")])
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
# The parts that a page loads when it is opened: tags, and the attribute that says from where.
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "video": "src"}
# A canonical address and the like load nothing.
LOADS_NOT = {"canonical", "next", "prev", "alternate"}


def test_commands_are_what_their_help_says() -> None:
    written = (ROOT / command_docs.PAGE).read_text()
    assert command_docs.MARK in written and command_docs.page(written) == written, "tests/python/command_docs.py"


def test_the_paper_cites_what_it_lists_and_has_the_numbers_of_the_pages() -> None:
    text, listed = (ROOT / "paper.md").read_text(), (ROOT / "paper.bib").read_text()
    cited = re.findall(r"@(\w+)", re.sub(r"^---$.*?^---$", "", text, count=1, flags=re.M | re.S))
    assert set(cited) == set(re.findall(r"^@\w+\{(\w+),$", listed, re.M))
    numbers = re.findall(r"\[(\d[^\]]*)\]\(([^)]+)\)", text)
    assert len(numbers) >= 3
    for number, page in numbers:
        assert re.search(rf"\b{re.escape(number)}\b", (ROOT / page).read_text()), f"paper.md: {page} has no {number}"


def prose(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"^ *(```|~~~).*?^ *\1[ \t]*$", "", page.read_text(), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The places in a page that links may name, as GitHub and the site have them."""
    text = prose(page)
    titles = re.findall(r"^#+ (.*?)\s*$", text, re.M)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    found = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain}
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def test_links_between_pages_lead_somewhere_on_github_too() -> None:
    known = {page: anchors(page) for page in PAGES}
    lost = []
    for page in PAGES:
        for target in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
            path, _, place = target.partition("#")
            if ":" in path:
                continue
            to = (page.parent / path).resolve() if path else page
            if not to.exists() or (place and to in known and place not in known[to]):
                lost.append(f"{page.relative_to(ROOT)}: {target}")
    assert lost == []


def test_the_gallery_shows_every_picture_of_a_paper_and_the_page_of_schemes_every_scheme() -> None:
    gallery, schemes = (ROOT / "papers/README.md").read_text(), (ROOT / "docs/schemes/README.md").read_text()
    pictures = {path.relative_to(ROOT / "papers").as_posix() for path in (ROOT / "papers").glob("*/*.png")}
    assert pictures == set(re.findall(r"!\[[^\]]*\]\(([^)]*)\)", gallery))
    assert [name for name in cw.schemes().index if f'`"{name}"`' not in schemes] == []


def test_the_tutorials_code_is_what_clearway_new_writes() -> None:
    page = (ROOT / "docs/write-a-transport.md").read_text()
    blocks = re.findall(r"^```rust\n(.*?)^```$", page, re.M | re.S)
    files = [
        ROOT / "python/clearway/programs/crates/transport/src" / name for name in ("lib.rs", "tests.rs", "main.rs")
    ]
    assert "\n".join(blocks) == "\n".join(file.read_text() for file in files)


def test_the_page_on_citing_says_what_citation_cff_says() -> None:
    page, said = (ROOT / "docs/cite.md").read_text(), (ROOT / "CITATION.cff").read_text()
    wanted = re.findall(r"^(?:version|license|repository-code|    doi): (.+)$", said, re.M)
    wanted += re.findall(r'^  - type: .*\n    title: "(.+)"$', said, re.M)
    assert len(wanted) == 3 + 3 + 5 and [each for each in wanted if each not in page] == []
    assert cw.__version__ in page


class Read(HTMLParser):
    """The loads, links and anchors of a built page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        self.anchors |= {name for name in (said.get("id"), said.get("name")) if name}
        if tag == "a" and said.get("href"):
            self.links.append(str(said["href"]))
        if (where := said.get(LOADS.get(tag, ""))) and said.get("rel") not in LOADS_NOT:
            self.loads.append(where)


# Elements that GitHub's reader of Markdown and the site's could count differently.
COUNTED = ("li", "tr", "table", "pre", "h2", "h3", "img", "details")


def differing(site: Path) -> list[str]:
    """Pages that have more or fewer items, rows or blocks of code on the site than on GitHub."""
    reader, found = MarkdownIt("commonmark", {"html": True}).enable("table"), []
    for page in PAGES:
        # The content of one is on the site alone, and so are the references of the other.
        if page.name in ("python-api.md", "paper.md"):
            continue
        built = site / page.relative_to(ROOT).with_suffix(".html")
        built = built.with_name("index.html") if page.name == "README.md" else built
        [article] = re.findall(r"<article.*</article>", built.read_text(), re.S)
        there = reader.render(page.read_text())
        for tag in COUNTED:
            counts = [len(re.findall(rf"<{tag}[ >]", text)) for text in (there, article)]
            if counts[0] != counts[1]:
                found.append(f"{page.relative_to(ROOT)}: {counts[0]} {tag} on GitHub, {counts[1]} on the site")
    return found


def elsewhere(address: str) -> bool:
    return bool(re.match(r"(\w+:)?//", address))


def test_the_site_is_whole_loads_nothing_from_elsewhere_and_finds_words_without_a_server(tmp_path: Path) -> None:
    """In one test, since it takes some seconds to build."""
    for needed in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed, and so no site is built: make docs")
    site = tmp_path / "site"
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "RUST_DOC": ""}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page: Read(page) for page in sorted(site.rglob("*.html"))}
    assert len(pages) > 40
    assert [(page.name, load) for page, read in pages.items() for load in read.loads if elsewhere(load)] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text()), style
    lost = []
    for page, read in pages.items():
        # The page for what is not found does not know where it is.
        for link in [] if page.name == "404.html" else [*read.links, *read.loads]:
            path, _, place = unquote(link).partition("#")
            if re.match(r"\w+:|//", link):
                continue
            to = (page.parent / path).resolve() if path and path != "." else page
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file() or (place and to in pages and place not in pages[to].anchors | {"__skip"}):
                lost.append(f"{page.relative_to(site)}: {link}")
    assert lost == []
    assert differing(site) == []
    if browser.CHROMIUM is None:
        print("no Chromium is installed: search is not tried")
        return
    found, asked, complaints = browser.look_at(site / "index.html", _search)
    # A key's description comes before the pages that mention the key.
    assert "docs/keys/" in found[0], found
    assert any("schemes/harmony.html" in link for link in found), found
    assert asked and all(address.startswith(("file:", "data:", "blob:")) for address in asked), asked
    assert complaints == []


async def _search(page: browser.Page) -> tuple[list[str], list[str], list[str]]:
    """Links that a search finds, what the browser has asked for, and what it complained of."""
    # The index of words is there as soon as the page listens.
    await page.until("typeof __index === 'object' && !!document.querySelector('iframe')")
    await page.evaluate("document.querySelector('.md-search__input').focus()")
    await page.ask("Input.insertText", text="delta_admission")
    # The page looks when a key comes up.
    await page.evaluate("document.querySelector('.md-search__input').dispatchEvent(new KeyboardEvent('keyup'))")
    results = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href).join(' ')"
    links = await page.until(results)
    return links.split(), page.asked, page.complaints
