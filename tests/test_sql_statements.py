"""Named SQL statements: each one is used, each used one exists, names agree between dialects.

Every package of Laneway that has ``-- name:`` blocks is found and checked.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import laneway
from laneway.sqlfile import read_blocks, statements

SOURCE = Path(laneway.__file__).parent
ENGINES = ("postgresql", "mysql", "sqlite")
# Functions and methods that take the name of a statement as their first argument.
BY_NAME = (
    "statement",
    "_statement",
    "_statement_now",
    "_insert",
    "_union",
    "_lock_leases",
    "template",
)
# The same for methods of a store or a catalog: ``store.ask("clock")``, ``self.ask("clock")``.
OF_A_STORE = ("ask", "ask_with_names", "_ask", "tell", "tell_many", "stream", "fetch", "text")
# What a migration creates, and which tables get another column.
_CREATE = re.compile(
    r"^create (?:or replace )?(?:unique )?(?:unlogged )?"
    r"(table|view|function|index|sequence|type|trigger) (?:if not exists )?([^\s(]+)",
    re.MULTILINE,
)
_ADD_COLUMN = re.compile(r"^alter table ([^\s(]+)\s+add column", re.MULTILINE)


def _packages() -> list[Path]:
    """Each engine, and each other package that a file with blocks is in."""
    found = set()
    for file, _ in _files(SOURCE):
        room, *deeper = file.parent.relative_to(SOURCE).parts
        inner = deeper[:1] if room in ("engines", "dev") else []
        found.add(SOURCE.joinpath(room, *inner))
    return sorted(found)


def _name(package: Path) -> str:
    return ".".join(("laneway", *package.relative_to(SOURCE).parts))


def _files(package: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """The files with blocks; a migration or a table of the report is a file of its own."""
    for file in sorted(package.rglob("*.sql")):
        blocks = read_blocks(file.read_text(encoding="utf-8"))
        if blocks and "migrations" not in file.parts:
            yield file, blocks


def _dialects(package: Path) -> bool:
    """Whether its files are one for each dialect, with the same statements, not one a module."""
    return {file.stem for file, _ in _files(package)} <= {*ENGINES}


def _module_of(file: Path) -> Path:
    """``stage.py`` of ``stage.sql``, and of ``stage_mysql_sqlite.sql``."""
    words = file.stem.split("_")
    while words[-1] in ENGINES and len(words) > 1:
        words.pop()
    return file.with_name("_".join(words) + ".py")


def _words(file: Path, package: Path) -> set[str]:
    """What a file is called by, with its folders: ``claim/scan.sql``, ``claim_scan.sql``."""
    parts = file.relative_to(package).with_suffix("").parts
    return {word for part in parts for word in part.split("_")}


def _strings(module: Path) -> set[str]:
    """Every string in a module."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return {node.value for node in _constants(tree) if isinstance(node.value, str)}


def _constants(tree: ast.AST) -> Iterator[ast.Constant]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Constant))


def _asked_for(module: Path) -> set[str]:
    """The statements that a module runs by name."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in BY_NAME or _is_of_a_store(called):
            names |= {one.value for one in _constants(node.args[0]) if isinstance(one.value, str)}
    return names


def _is_of_a_store(called: ast.expr) -> bool:
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return False
    return called.attr in OF_A_STORE and called.value.id in ("store", "self")


def _used_in(package: Path) -> dict[str, set[str]]:
    """The functions and methods of a package by the strings in them."""
    found: dict[str, set[str]] = {}
    for module in package.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for one in _constants(node):
                    if isinstance(one.value, str):
                        found.setdefault(one.value, set()).add(node.name)
    return found


@pytest.mark.parametrize("package", _packages(), ids=_name)
def test_every_statement_is_used(package: Path) -> None:
    used = set[str]().union(*map(_strings, package.rglob("*.py")))
    for file, blocks in _files(package):
        unused = blocks.keys() - used
        assert not unused, f"nothing uses {sorted(unused)} of {file}"


@pytest.mark.parametrize("package", _packages(), ids=_name)
def test_every_statement_is_beside_the_module_that_uses_it(package: Path) -> None:
    """Or in its group: ``claim.sql`` is for ``claim_rounds.py`` too. Those of ``base.sql`` are for
    all."""
    if _dialects(package):
        return
    strings = {module: _strings(module) for module in package.rglob("*.py")}
    for file, blocks in _files(package):
        assert _module_of(file) in strings, f"{file} has no module beside it"
        group = [
            found
            for module, found in strings.items()
            if file.stem == "base" or _words(module, package) & _words(file, package)
        ]
        unused = blocks.keys() - set[str]().union(*group)
        assert not unused, f"no module of its group uses {sorted(unused)} of {file}"


@pytest.mark.parametrize("package", _packages(), ids=_name)
def test_every_used_statement_exists(package: Path) -> None:
    known = {name for _, blocks in _files(package) for name in blocks}
    for module in package.rglob("*.py"):
        missing = _asked_for(module) - known
        assert not missing, f"{module} uses {sorted(missing)}, which no SQL file has"


@pytest.mark.parametrize("package", _packages(), ids=_name)
def test_a_name_stands_for_one_statement(package: Path) -> None:
    if _dialects(package):
        names = [set(blocks) for _, blocks in _files(package)]
        assert all(found == names[0] for found in names)
    else:
        assert all(statements(_name(package), dialect) for dialect in ENGINES)


def test_a_name_means_the_same_verb_in_every_dialect() -> None:
    """It is in a file or folder of the same name, or used in a method of the same name."""
    places: dict[str, dict[str, set[str]]] = {}
    for engine in ENGINES:
        package = SOURCE / "engines" / engine
        methods = _used_in(package)
        for file, blocks in _files(package):
            for name in blocks:
                words = _words(file, package) | methods.get(name, set())
                places.setdefault(name, {})[engine] = words
    differing = {
        name: found
        for name, found in places.items()
        if len(found) > 1 and not set.intersection(*found.values())
    }
    assert not differing


@pytest.mark.parametrize("engine", ENGINES)
def test_a_migration_creates_everything_once(engine: str) -> None:
    """A column where its table is created, a function in its last form: nothing is replaced later
    in the same migration."""
    for folder in (SOURCE / "engines" / engine / "migrations").iterdir():
        texts = [file.read_text() for file in folder.rglob("*.sql")]
        created = Counter(found for text in texts for found in _CREATE.findall(text))
        assert created
        assert [name for name, times in created.items() if times > 1] == []
        altered = {table for text in texts for table in _ADD_COLUMN.findall(text)}
        assert altered.isdisjoint(name for _, name in created)


def test_every_wake_names_its_lane() -> None:
    """One without a lane is not found by claims of some kinds."""
    folder = SOURCE / "engines/postgresql/migrations"
    texts = [file.read_text() for file in folder.rglob("*.sql")]
    columns = [c for text in texts for c in re.findall(r"insert into wake \(([^)]*)\)", text)]
    assert len(columns) > 10
    assert all(found.endswith(", lane") for found in columns)
