"""Builds the site of the docs from the Markdown in the repository; every warning is an error.

``python scripts/make_site.py [FOLDER]`` writes ``<version>/``, ``versions.json`` and a page that
leads to the newest version into the folder, ``build/site`` by default. What was built there of
other versions stays.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "site-work"

# Pages outside of docs/, and what they are called on the site.
BESIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
}
# What has a page of the API, by the modules whose public names are on it.
API = {
    "laneway": ("laneway",),
    "client": ("laneway.client",),
    "errors": ("laneway.errors",),
    "integrations": (
        "laneway.integrations.asgi",
        "laneway.integrations.celery",
        "laneway.integrations.sqlalchemy",
        "laneway.integrations.taskiq",
    ),
    "testing": ("laneway.testing",),
}
_LEADS_ON = (
    '<!doctype html><meta http-equiv="refresh" content="0; url={newest}/"><title>Laneway</title>\n'
)
_EXAMPLE = re.compile(r"^( *)>>>[^\n]*\n(?:\1(?:>>>|\.\.\.)[^\n]*\n)*", re.MULTILINE)
_REST = re.compile(r"^( *)- ([\w-]+)/\*$", re.MULTILINE)
_LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def pages() -> dict[str, str]:
    """Paths in the repository, and those on the site."""
    docs = {str(file.relative_to(ROOT)): file for file in (ROOT / "docs").rglob("*.md")}
    found = {path: path.removeprefix("docs/") for path in sorted(docs)}
    examples = sorted((ROOT / "examples").glob("*.py"))
    found |= {f"examples/{file.name}": f"examples/{file.stem}.md" for file in examples}
    return BESIDE | found


def write_sources(folder: Path) -> None:
    """Every page as the site has it, and the pictures."""
    shutil.copytree(ROOT / "docs" / "pictures", folder / "pictures")
    for path, target in pages().items():
        text = (ROOT / path).read_text()
        page = _example(path, text) if path.endswith(".py") else moved(path, target, text)
        _write(folder / target, page)
    for name, modules in API.items():
        _write(folder / "api" / f"{name}.md", _api(name, modules))


def moved(path: str, target: str, text: str) -> str:
    """The text with its links as they are from the page's place on the site."""
    parts = _FENCED.split(text)
    return "".join(
        part if n % 2 else _LINK.sub(lambda link: _link(path, target, link), part)
        for n, part in enumerate(parts)
    )


def _link(path: str, target: str, link: re.Match[str]) -> str:
    text, address = link[1], link[2]
    if re.match(r"[a-z]+:|#", address):
        return link[0]
    place, _, anchor = address.partition("#")
    here = os.path.normpath(PurePosixPath(path).parent / place)
    there = pages().get(here) or (here.removeprefix("docs/") if "docs/pictures/" in here else None)
    if there is None:
        raise SystemExit(f"{path}: the link to {address} leads to nothing that the site has")
    relative = os.path.relpath(there, PurePosixPath(target).parent)
    return f"{text}({relative}{'#' if anchor else ''}{anchor})"


def _example(path: str, text: str) -> str:
    said = ast.get_docstring(ast.parse(text)) or ""
    return f"# {Path(path).name}\n\n{said}\n\n```python\n{text}```\n"


def _api(name: str, modules: tuple[str, ...]) -> str:
    parts = [f"# API: {name}\n"]
    for module in modules:
        if len(modules) > 1:
            parts.append(f"## {module}\n")
        parts += [f"::: {module}.{public}\n" for public in _public(module)]
    return "\n".join(parts)


def _public(module: str) -> list[str]:
    """Its ``__all__``, or every class and function of its own."""
    base = ROOT / "src" / Path(*module.split("."))
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    body = ast.parse(file.read_text()).body
    for node in body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return [name for name in names if not name.startswith("_")]
    kinds = (ast.ClassDef, ast.FunctionDef)
    return [n.name for n in body if isinstance(n, kinds) and not n.name.startswith("_")]


def write_package(folder: Path) -> None:
    """The modules for the API's pages, with the examples of their docstrings as code: in Markdown
    ``>>>`` would be a quotation."""
    for file in (ROOT / "src" / "laneway").rglob("*.py"):
        _write(folder / file.relative_to(ROOT / "src"), _EXAMPLE.sub(_fenced, file.read_text()))


def _fenced(example: re.Match[str]) -> str:
    if '"""' in example[0]:
        return example[0]
    return f"{example[1]}```pycon\n{example[0]}{example[1]}```\n"


def build(folder: Path) -> Path:
    """The site of this version, in its own folder."""
    shutil.rmtree(WORK, ignore_errors=True)
    write_sources(WORK / "source")
    write_package(WORK / "package")
    _write(WORK / "mkdocs.yml", config())
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run([program, "build", "--strict", "--clean"], cwd=WORK, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    target = folder / version()
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(WORK / "out", target)
    _list_versions(folder)
    return target


def config() -> str:
    """With the pages that its wildcards stand for."""
    text = (ROOT / "docs" / "mkdocs.yml").read_text()

    def rest(entry: re.Match[str]) -> str:
        of_folder = (page for page in pages().values() if page.startswith(f"{entry[2]}/"))
        return "\n".join(f"{entry[1]}- {page}" for page in of_folder if page not in text)

    return _REST.sub(rest, text)


def version() -> str:
    text = (ROOT / "src/laneway/__init__.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    assert found is not None
    return found[1]


def _list_versions(folder: Path) -> None:
    names = [entry.name for entry in folder.iterdir() if (entry / "index.html").is_file()]
    names.sort(key=lambda name: [int(n) for n in re.findall(r"\d+", name)], reverse=True)
    known = [{"version": name, "title": name, "aliases": []} for name in names]
    known[0]["aliases"] = ["latest"]
    _write(folder / "versions.json", json.dumps(known, indent=2) + "\n")
    _write(folder / "index.html", _LEADS_ON.format(newest=names[0]))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def check_spelling() -> None:
    """A known misspelling is an error; words of examples are allowed in pyproject.toml."""
    texts = [*BESIDE, *(str(file.relative_to(ROOT)) for file in (ROOT / "docs").rglob("*.md"))]
    typos = Path(sys.executable).with_name("typos")
    if subprocess.run([typos, "--sort", *texts], cwd=ROOT).returncode:
        sys.exit("spelling: mend the words above")


if __name__ == "__main__":
    check_spelling()
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"))
