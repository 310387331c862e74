"""One PostgreSQL server for the whole run, an older one if a test asks for it, and a fresh schema
for each test that asks for one."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.embedded import EmbeddedPostgres
from penstock.embedded_mariadb import OwnMariaDB, install_mariadb
from tests.place import Place, fresh_schema

NO_MARIADB = (
    "MARIADB IS NOT TESTED: no mariadbd here, and it could not be installed "
    "(needs root and the Debian package mariadb-server)"
)
SETTINGS = {"fsync": False, "full_page_writes": False, "max_connections": 200}


_SPARK = ("lake", "spark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs in one process, for pytest-xdist: all that shares a Spark, which starts first
    because it takes longest; the cases of a world of the conformance suite; else a file."""
    items.sort(key=lambda item: item.path.parent.name not in _SPARK)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    if item.path.parent.name in _SPARK:
        return "spark"
    parameters = (
        item.callspec.params
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else {}
    )
    return f"{item.path} {parameters.get('harness', '')}"


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(version=18, settings=SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def server16() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(version=16, settings=SETTINGS) as running:
        yield running


class SqliteFiles:
    """Databases in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_database(self, name: str) -> str:
        return f"sqlite:///{self._folder / name}.db?synchronous=normal"


class SqliteMemory:
    def create_database(self, name: str) -> str:
        return "sqlite://"


@pytest.fixture(scope="session")
def sqlite_files(tmp_path_factory: pytest.TempPathFactory) -> SqliteFiles:
    return SqliteFiles(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def sqlite_memory() -> SqliteMemory:
    return SqliteMemory()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[OwnMariaDB]:
    """A real server from the system's packages, which are installed if that is possible."""
    if not install_mariadb():
        warnings.warn(NO_MARIADB, stacklevel=1)
        pytest.skip(NO_MARIADB)
    with OwnMariaDB() as running:
        yield running


@pytest.fixture(scope="session")
def database(server: EmbeddedPostgres) -> str:
    """The URL of a database of our own."""
    return server.create_database("penstock_tests")


@pytest.fixture
def place(database: str) -> Place:
    return Place(database, fresh_schema())
