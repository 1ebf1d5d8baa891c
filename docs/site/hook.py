"""The site's additions to MkDocs: pages stay where they are in the repository, and links between them work on both.

A page's address on the site is its path in the repository, so relative links are the same on GitHub and here. A link to
a crate's folder leads to its Rust documentation, where that was built; a link to any other file or folder that is no
page leads to the repository.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# Beside `docs`.
PAGES = ("*.md", "papers/**/*.md", "papers/**/*.png")
# The reference of keys.
KEYS = "docs/keys"
# Beside pages, what they show or need.
SHOWN = (".md", ".png", ".svg", ".js", ".css")
# The folder that `cargo doc` has written, and where the site has it. Without it, crates are linked in the repository.
RUST_DOC, RUST = "RUST_DOC", "rust"
# The page that `make web` has made, where the site has it, and what stands for the way to it in its own page.
WEB_PAGE, WEB, WEB_PLACE = ROOT / "target/playground/page", "playground", "<!-- the playground -->"

_LINK = re.compile(r"(?<!!)(\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
# A line of a paragraph before the first item of a list.
_BEFORE_LIST = re.compile(r"^(?![-*+>#|]|\d+\. )(\S.*)\n(?=- )", re.M)
_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1[ \t]*$", re.M | re.S)


def slug(title: str, separator: str) -> str:
    """The anchor of a heading as GitHub has it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Headings get GitHub's anchors."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """All pages, by their paths in the repository."""
    # The theme's own files stay.
    found = [file for file in files if file.src_dir != config.docs_dir]
    paths = {path for path in (ROOT / "docs").rglob("*") if path.suffix in SHOWN}
    for pattern in PAGES:
        paths.update(ROOT.glob(pattern))
    for path in sorted(paths):
        found.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return Files(found)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to what is no page, and tables that are folded up."""
    folder = posixpath.dirname(page.file.src_uri)
    if folder == KEYS:
        # A search for a key finds its description before pages that mention it.
        page.meta["search"] = {"boost": 8}
    if page.file.src_uri == "paper.md":
        markdown = f"# {page.meta['title']}\n\n{_with_references(markdown)}"

    def other(link: re.Match[str]) -> str:
        target = link[2].split("#")[0]
        if not target or ":" in target:
            return link[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if files.get_file_from_path(path) is not None or not (ROOT / path).exists():
            return link[0]
        return link[1] + _address(path, config) + link[3]

    if (WEB_PAGE / "index.html").is_file():
        up = "../" * page.file.dest_uri.count("/")
        button = f'<a class="md-button md-button--primary" href="{up}{WEB}/index.html">Open the playground</a>'
        markdown = markdown.replace(WEB_PLACE, button)
    # Code stays as it is.
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_as_on_github(_LINK.sub(other, markdown[end : fence.start()])), fence[0]]
        end = fence.end()
    return "".join([*parts, _as_on_github(_LINK.sub(other, markdown[end:]))])


def _with_references(markdown: str) -> str:
    """A paper as journals print it: `[@key]` in words, and at the end the works of paper.bib that it cites."""
    words, works = {}, []
    listed = (ROOT / "paper.bib").read_text(encoding="utf-8")
    for key, body in re.findall(r"^@\w+\{(\w+),\n(.*?)^\}$", listed, re.M | re.S):
        fields = {name: " ".join(text.split()) for name, text in re.findall(r"(\w+)\s*=\s*\{(.*?)\},?\n", body, re.S)}
        # Accents as signs of their own, and no braces.
        plain = {name: re.sub(r"\{\\'(\w)\}", "\\1\u0301", text) for name, text in fields.items()}
        fields = {name: re.sub(r"[{}]", "", text) for name, text in plain.items()}
        authors = fields["author"].split(" and ")
        first, *rest = [author.partition(",")[0] for author in authors]
        more = " and others" if len(rest) > 1 else "".join(f" and {one}" for one in rest)
        words[key] = f"({first}{more}, {fields['year']})"
        where = f"{fields.get('booktitle') or fields['journal']}, {fields['year']}."
        at = f" [{fields['doi']}](https://doi.org/{fields['doi']})" if "doi" in fields else ""
        works.append(f"- {'; '.join(authors)}: *{fields['title']}*. {where}{at}")
    text = re.sub(r"\[@(\w+)\]", lambda cited: words[cited[1]], markdown)
    return "\n".join([text.rstrip(), "", *sorted(works), ""])


def _as_on_github(prose: str) -> str:
    """Markdown within tags is read where that is said, and a list begins after an empty line."""
    return _BEFORE_LIST.sub(r"\1\n\n", prose.replace("<details>", '<details markdown="1">'))


def _address(path: str, config: MkDocsConfig) -> str:
    if os.environ.get(RUST_DOC) and re.fullmatch(r"crates/[\w-]+", path):
        text = (ROOT / path / "Cargo.toml").read_text(encoding="utf-8")
        # A library's own name, if it has one, or its package's.
        name = re.findall(r'^(?:\[lib\]\n|\[package\]\n)name = "(.*)"', text, re.M)[-1]
        return f"{RUST}:{name.replace('-', '_')}"
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{config.extra['repository']}/{kind}/main/{path}"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Addresses of Rust documentation, from where the page is."""
    up = "../" * page.file.dest_uri.count("/")
    return re.sub(rf'href="{RUST}:(\w+)"', rf'href="{up}{RUST}/\1/index.html"', output)


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """The Rust documentation and the playground, beside the pages."""
    if folder := os.environ.get(RUST_DOC):
        shutil.copytree(folder, Path(config.site_dir) / RUST, dirs_exist_ok=True)
    if WEB_PAGE.is_dir():
        shutil.copytree(WEB_PAGE, Path(config.site_dir) / WEB, dirs_exist_ok=True)
