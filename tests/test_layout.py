"""The layout of the source: no circles, one loader of SQL, one class of each name, and a first
line that says what a module is for. Size is judged by reading."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.spark_part import IN_MAKE_TEST

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
FILES = [file for file in SOURCE.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
PYTHON = [file for file in FILES if file.suffix == ".py"]
# Django finds a migration by its class's name.
DJANGO_MIGRATIONS = SOURCE / "laneway/integrations/django/migrations"


def test_a_class_name_is_given_once() -> None:
    places = defaultdict(list)
    for file in PYTHON:
        if file.is_relative_to(DJANGO_MIGRATIONS):
            continue
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(file.relative_to(SOURCE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_sql_files_have_one_loader() -> None:
    readers = {
        str(file.relative_to(SOURCE / "laneway"))
        for file in PYTHON
        if '.sql"' in (text := file.read_text()) and "read_text" in text
    }
    # Named statements, one file of them for each dialect, scripts of migrations, and the report's
    # Spark SQL, which Spark itself gives its parameters.
    assert readers == {
        "sqlfile.py",
        "dev/chaos/config.py",
        "engines/migration_files.py",
        "lake/report/tables.py",
    }


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports at the top of modules; those inside functions and for type checkers wait."""
    modules = {_module(file): file for file in PYTHON}
    imports = {name: _imported(name, file, modules) for name, file in modules.items()}
    while free := [name for name, needed in imports.items() if not needed]:
        for name in free:
            del imports[name]
        for needed in imports.values():
            needed.difference_update(free)
    # What is left is in a circle, or needs what is in one.
    circle = {name for name in imports if any(name in needed for needed in imports.values())}
    assert circle == set()


def _module(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(name: str, file: Path, modules: dict[str, Path]) -> set[str]:
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.parse(file.read_text()).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        above = package.split(".")[: len(package.split(".")) - max(node.level - 1, 0)]
        base = ".".join([*above, node.module or ""]).rstrip(".") if node.level else node.module
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            found.add(inner if inner in modules else base)
    return {one for one in found if one in modules} - {name}


@pytest.mark.parametrize("file", PYTHON, ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_module_says_what_it_is(file: Path) -> None:
    tree = ast.parse(file.read_text())
    assert not tree.body or ast.get_docstring(tree) or file.name == "__init__.py"


@pytest.mark.parametrize("name", sorted(IN_MAKE_TEST))
def test_a_test_of_spark_that_make_test_names_exists(name: str) -> None:
    file, _, function = name.partition("::")
    assert f"def {function}(" in (ROOT / file).read_text()
