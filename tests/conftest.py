"""One PostgreSQL server for the whole run (18, or the given one), an older one if a test asks for
it, and a fresh schema for each test that asks for one."""

import signal
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

# Before anything imports it: its asserts are what the cases are made of.
pytest.register_assert_rewrite("laneway.conformance")

from laneway import Queue  # noqa: E402
from laneway.dev.embedded import (  # noqa: E402
    EmbeddedMariaDB,
    EmbeddedPostgres,
    install_mariadb,
)
from tests.place import Place, fresh_schema  # noqa: E402
from tests.spark_part import IN_MAKE_TEST  # noqa: E402
from tests.stores import GIVEN_SERVER, repeated_combination  # noqa: E402

_SPARK = {"spark", "lake"}
_places = count(1)
NO_MARIADB = (
    "MARIADB IS NOT TESTED: no mariadbd here, and it could not be installed "
    "(needs root and the Debian package mariadb-server)"
)
# Compiling the tests' own queries takes longer than running them.
SETTINGS = {"fsync": False, "full_page_writes": False, "max_connections": 200, "jit": False}


def pytest_configure() -> None:
    """Processes that tests start inherit which signals we ignore: a job in a shell's background, as
    CI may be, ignores Ctrl-C, and one under nohup SIGHUP."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        choices=("all", "quick", "rest"),
        default="all",
        help="quick: without the combinations that repeat another one (marker `repeats`); "
        "rest: only those",
    )


# Before pytest-xdist's own, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # First what takes one process longest: the others share the rest meanwhile.
    items.sort(key=lambda item: not _uses_spark(item))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_process_of(item)))
        if reason := repeated_combination(_parameters_of(item)):
            item.add_marker(pytest.mark.repeats(reason))
        if _uses_spark(item) and item.nodeid.partition("[")[0] not in IN_MAKE_TEST:
            item.add_marker(
                pytest.mark.repeats(
                    "make test has few tests on Spark, named in tests/spark_part.py"
                )
            )
    part = config.getoption("--part")
    if part == "all":
        return
    chosen = {True: [], False: []}  # type: dict[bool, list[pytest.Item]]
    for item in items:
        chosen[(item.get_closest_marker("repeats") is None) == (part == "quick")].append(item)
    config.hook.pytest_deselected(items=chosen[False])
    items[:] = chosen[True]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Without groups every process would start every server: three times as long."""
    grouped = getattr(session.config.option, "loadgroup", False)
    if grouped and not all("@" in item.nodeid for item in session.items):
        raise pytest.UsageError("pytest-xdist ignores groups with this version of pytest")


def _parameters_of(item: pytest.Item) -> dict[str, object]:
    return dict(item.callspec.params) if hasattr(item, "callspec") else {}


def _process_of(item: pytest.Item) -> str:
    """What pytest-xdist runs in one process: everything that shares Spark's session, a client of
    the conformance suite, a page of the docs, or a file."""
    if _uses_spark(item):  # two sessions, because one would be what all others wait for
        return "lake" if "lake" in _folders(item) else "spark"
    parameters = _parameters_of(item)
    return f"{item.path} {parameters.get('harness', '')} {parameters.get('page', '')}"


def _uses_spark(item: pytest.Item) -> bool:
    return not _SPARK.isdisjoint(_folders(item))


def _folders(item: pytest.Item) -> tuple[str, ...]:
    return item.path.relative_to(item.config.rootpath).parts


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(version=18, programs=GIVEN_SERVER, settings=SETTINGS) as running:
        yield running
        running.kill()  # nobody reads its data again: no checkpoint of hundreds of databases


@pytest.fixture(scope="session")
def server16() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(version=16, settings=SETTINGS) as running:
        yield running
        running.kill()


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
def mariadb() -> Iterator[EmbeddedMariaDB]:
    """A real server from the system's packages, which are installed if that is possible."""
    if not install_mariadb():
        warnings.warn(NO_MARIADB, stacklevel=1)
        pytest.skip(NO_MARIADB)
    with EmbeddedMariaDB() as running:
        yield running
        running.kill()


@pytest.fixture(scope="session")
def database(server: EmbeddedPostgres) -> str:
    """The URL of a database of our own."""
    return server.create_database("laneway_tests")


@pytest.fixture
def empty_place(database: str) -> Place:
    """Nothing is installed in it."""
    return Place(database, fresh_schema())


@pytest.fixture(scope="session")
def installed(server: EmbeddedPostgres) -> Place:
    """What every ``place`` is a copy of: to copy a database takes a tenth of an installation."""
    place = Place(server.create_database("installed"), fresh_schema())
    with Queue(place.url, schema=place.schema) as queue:
        queue.install()
    return place


@pytest.fixture
def place(server: EmbeddedPostgres, installed: Place) -> Iterator[Place]:
    """A database of its own, with Laneway in it: ``install`` finds nothing to do."""
    name = f"place {next(_places)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f'create database "{name}" template installed'.encode())
        yield Place(server.url(name), installed.schema)
        connection.execute(f'drop database "{name}" with (force)'.encode())
