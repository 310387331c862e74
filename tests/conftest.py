"""One PostgreSQL server for the whole run (18, or the given one), an older one if a test asks for
it, and a fresh schema for each test that asks for one."""

import signal
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before anything imports it: its asserts are what the cases are made of.
pytest.register_assert_rewrite("penstock.conformance")

from penstock.embedded import EmbeddedPostgres  # noqa: E402
from penstock.embedded_mariadb import OwnMariaDB, install_mariadb  # noqa: E402
from tests.place import Place, fresh_schema  # noqa: E402
from tests.stores import GIVEN_SERVER  # noqa: E402

NO_MARIADB = (
    "MARIADB IS NOT TESTED: no mariadbd here, and it could not be installed "
    "(needs root and the Debian package mariadb-server)"
)
# Compiling the tests' own queries takes longer than running them.
SETTINGS = {"fsync": False, "full_page_writes": False, "max_connections": 200, "jit": False}


def pytest_configure() -> None:
    """Processes that tests start inherit how we take Ctrl-C: a job in a shell's background, as CI
    may be, ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs in one process, for pytest-xdist: a world of the conformance suite, or a file."""
    for item in items:
        world = getattr(item, "callspec", None) and item.callspec.params.get("harness")  # type: ignore[attr-defined]
        item.add_marker(pytest.mark.xdist_group(f"{item.path} {world or ''}"))


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(version=18, programs=GIVEN_SERVER, settings=SETTINGS) as running:
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
