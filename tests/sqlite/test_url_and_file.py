"""URLs and files: settings, files that move or break, prefixes, install and uninstall."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from laneway import AsyncQueue, Queue, install_sql, upgrade_sql
from laneway.drivers.sqlite.runner import sqlite_notifier
from laneway.drivers.sqlite.url import connect, read_url
from laneway.errors import (
    ConnectionUnavailable,
    DatabaseFailed,
    InvalidName,
    InvalidOption,
    SchemaMissing,
)
from tests.client.worlds import run_async

NAMES = [
    "plain",
    "With Space",
    "it's",
    '"quoted"',
    "semi;colon--",
    "täglich 日本 🐎",
    "select",
    "%s $1",
]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:///data/jobs.db", "data/jobs.db"),
        ("sqlite:////var/jobs.db", "/var/jobs.db"),
        ("sqlite:///a%20b%3F.db", "a b?.db"),
        ("sqlite://", ":memory:"),
        ("sqlite:///", ":memory:"),
        ("sqlite:///:memory:", ":memory:"),
    ],
)
def test_urls(url: str, path: str) -> None:
    assert read_url(url).path == (path if path == ":memory:" else str(Path(path).absolute()))


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("sqlite://jobs.db", "names a host"),
        ("sqlite:jobs.db", "lacks slashes: write sqlite:///relative.db"),
        ("sqlite:/jobs.db", "or sqlite:////absolute.db"),
        ("sqlite:///jobs.db?mode=ro", "unknown option 'mode' in"),
        ("sqlite:///jobs.db?synchronous=off", "synchronous is 'off'"),
        ("sqlite:///jobs#1.db", "write it as %23"),
        ("sqlite:///jobs\n1.db", "write it as %0A"),
        ("sqlite:///jobs%001.db", "NUL"),
    ],
)
def test_invalid_urls(url: str, text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        Queue(url)
    with pytest.raises(InvalidOption, match=text):
        AsyncQueue(url)


def test_acknowledged_means_on_disk_unless_the_url_says_otherwise(path: Path) -> None:
    for option, number in (("", 2), ("?synchronous=normal", 1), ("?synchronous=extra", 3)):
        with closing(connect(read_url(f"sqlite:///{path}{option}"))) as connection:
            assert connection.execute("pragma synchronous").fetchone() == (number,)
            assert connection.execute("pragma journal_mode").fetchone() == ("wal",)


def test_a_path_with_special_characters(tmp_path: Path) -> None:
    path = tmp_path / "a#b ?c%20d'\ne.db"
    with Queue(f"sqlite:///{quote(str(path))}") as queue:
        queue.install()
    assert path.exists()


def test_a_client_keeps_its_file_when_the_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections are opened when they are needed, wherever the process is by then."""
    monkeypatch.chdir(tmp_path)
    with Queue("sqlite:///jobs.db") as queue:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        queue.install()
    assert (tmp_path / "jobs.db").exists()


def delete(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink()


def test_a_file_that_was_deleted_takes_no_messages(url: str, path: Path) -> None:
    """They would go to a file that nobody can open any more."""
    with Queue(url) as queue:
        queue.install()
        delete(path)
        with pytest.raises(SchemaMissing):
            queue.publish("lost")
        queue.install()
        queue.publish("kept")
    with Queue(url) as other:
        assert [message.text() for message in other.claim(10)] == ["kept"]


@run_async
async def test_the_notifier_sees_a_file_that_replaced_its_own(url: str, path: Path) -> None:
    async with AsyncQueue(url) as queue:
        await queue.install()
        notifier = sqlite_notifier(url, None, frozenset())
        assert await notifier.wait(0)
        assert not await notifier.wait(0)
        delete(path)
        await queue.install()
        assert await notifier.wait(0)
        await queue.publish("x")
        assert await notifier.wait(0)
        await notifier.close()


def test_the_error_of_a_broken_file_names_it_and_says_what_to_do(url: str, path: Path) -> None:
    with Queue(url) as queue:
        queue.install()
        queue.publish_many([b"x" * 500] * 500)
    page = 4096
    whole = path.read_bytes()
    path.write_bytes(whole[: 2 * page] + b"\xff" * (len(whole) - 2 * page))
    with Queue(url) as queue, pytest.raises(DatabaseFailed, match=r"jobs\.db.*backup"):
        queue.claim()
    path.write_bytes(b"a text, not a database" * page)
    with Queue(url) as queue, pytest.raises(ConnectionUnavailable, match=r"jobs\.db.*another file"):
        queue.claim()


def test_a_relative_path_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Queue("sqlite:///jobs.db") as queue:
        queue.install()
    assert (tmp_path / "jobs.db").exists()


def test_a_file_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    with (
        Queue(f"sqlite:///{tmp_path}/no/such/folder.db") as queue,
        pytest.raises(ConnectionUnavailable, match=r"folder\.db cannot be opened"),
    ):
        queue.install()
    other = tmp_path / "text.db"
    other.write_text("no database at all, only a long enough text " * 50)
    with Queue(f"sqlite:///{other}") as queue, pytest.raises(ConnectionUnavailable, match="text"):
        queue.install()


def test_an_old_library_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with Queue(f"sqlite:///{path}") as queue, pytest.raises(DatabaseFailed, match="is needed"):
        queue.install()


@pytest.mark.parametrize("name", NAMES)
def test_any_schema_name_is_a_prefix(url: str, name: str) -> None:
    with Queue(url, schema=name) as queue, Queue(url, schema=f"{name} too") as other:
        queue.install()
        other.install()
        queue.publish(1, key="once", headers={"a": 1})
        assert not other.claim()
        (message,) = queue.claim()
        message.complete()
        queue.upkeep()
        assert [entry.outcome for entry in queue.history(message.id)] == ["completed"]


def test_a_prefix_that_sqlite_reserves_is_refused(url: str) -> None:
    with pytest.raises(InvalidName, match="sqlite_"):
        Queue(url, schema="SQLite")


def test_uninstall_leaves_what_is_not_ours(url: str, path: Path) -> None:
    with Queue(url, schema="jobs") as queue, closing(sqlite3.connect(path)) as eyes:
        eyes.execute("create table jobs_of_mine (id integer)")
        with pytest.raises(SchemaMissing):
            queue.uninstall()
        queue.install()
        queue.uninstall()
        names = {row[0] for row in eyes.execute("select name from sqlite_master")}
        assert {name for name in names if not name.startswith("sqlite_")} == {"jobs_of_mine"}
        with pytest.raises(SchemaMissing, match="install"):
            queue.publish(1)


def test_the_printed_sql_installs(url: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(install_sql("my jobs", dialect="sqlite"))
    with Queue(url, schema="my jobs") as queue:
        version = queue.schema_version()
        queue.install()
        queue.upgrade()
        assert queue.schema_version() == version
        queue.publish(1)
        assert len(queue.claim()) == 1
    assert upgrade_sql(version, "my jobs", dialect="sqlite") == ""


def test_an_interrupted_install_leaves_nothing(url: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table laneway_subscription (id integer)")
    with Queue(url) as queue:
        with pytest.raises(DatabaseFailed, match="laneway_subscription"):
            queue.install()
        with pytest.raises(SchemaMissing):
            queue.schema_version()


def test_the_biggest_numbers_and_the_edges_of_time(url: str) -> None:
    with Queue(url) as queue:
        queue.install()
        with closing(sqlite3.connect(read_url(url).path)) as connection, connection:
            connection.execute("update laneway_state set message_id = ?, fence = ?", [2**62, 2**62])
        queue.publish(1, max_attempts=2**31 - 1, at=datetime(1, 1, 2, tzinfo=UTC))
        queue.publish(2, expires_at=datetime(9999, 12, 30, tzinfo=UTC))
        first, second = queue.claim(2)
        assert (first.id, first.fence) == (2**62 + 1, 2**62 + 1)
        assert (first.max_attempts, first.due.year) == (2**31 - 1, 1)
        assert second.expires_at is not None and second.expires_at.year == 9999
        second.defer(at=datetime(9999, 12, 30, tzinfo=UTC))
        assert [n.scheduled for n in queue.stats()] == [1]


@run_async
async def test_a_database_in_memory_ends_with_its_client() -> None:
    async with AsyncQueue("sqlite://") as one, AsyncQueue("sqlite://") as two:
        await one.install()
        await one.publish(1)
        assert len(await one.claim()) == 1
        with pytest.raises(SchemaMissing):
            await two.publish(1)
