"""All checks of doctor, one after the other."""

import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import typer

from laneway.drivers.database_url import dialect_url
from laneway.errors import ConnectionUnavailable, LanewayError
from laneway.inspection import Finding
from laneway.spark import Check, doctor, session

from .connect import Config, check_file, open_config
from .sources import ANSWER_SECONDS, Source

if TYPE_CHECKING:
    from laneway import Queue


_OLDEST_PYTHON = (3, 11)
_DRIVERS = ("psycopg", "asyncpg", "PyMySQL")
_SKEW = timedelta(seconds=2)


def versions(config: Config) -> Iterator[Finding]:
    text = f"Python {platform.python_version()}, Laneway {version('laneway')}"
    drivers = [f"{name} {found}" for name in _DRIVERS if (found := _installed(name))]
    says = ", ".join([text, *drivers]) + "."
    if sys.version_info < _OLDEST_PYTHON:
        yield Finding("versions", "fail", says, "Laneway needs Python 3.11 or newer.")
    else:
        yield Finding("versions", "ok", says)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def clock_skew(client: "Queue") -> Finding:
    """The database's clock against ours, corrected by half a round trip."""
    before = time.monotonic()
    theirs = client.clock()
    way = timedelta(seconds=(time.monotonic() - before) / 2)
    skew = theirs - (datetime.now(UTC) - way)
    doubt = _SKEW + way
    seconds = abs(skew.total_seconds())
    if abs(skew) <= doubt:
        return Finding(
            "clock", "ok", f"This machine and the database agree within {seconds:.2f} s."
        )
    ahead = "ahead of" if skew > timedelta(0) else "behind"
    says = f"The database's clock is {seconds:.1f} s {ahead} this machine's."
    mend = (
        "Guarantees hold (only the database's clock counts), but times given with --at are off: "
        "run NTP on both machines."
    )
    return Finding("clock", "warn", says, mend)


def pooler(config: Config) -> Iterator[Finding]:
    """Whether two sessions share one backend, which only a pooler can do."""
    if config.url is None or not config.url.startswith(("postgresql", "postgres")):
        return
    mode = _pooler_mode(config.url)
    if mode is None:
        yield Finding("pooler", "ok", "No pooler before the server, or one in session mode.")
    elif config.pooler:
        yield Finding("pooler", "ok", "A pooler in transaction mode, as laneway.toml says.")
    else:
        says = "The URL leads to a pooler in transaction mode."
        mend = "Use Queue(url, pooler=True), and pooler = true in laneway.toml."
        yield Finding("pooler", "warn", says, mend)


def _pooler_mode(url: str) -> str | None:
    import psycopg

    plain = dialect_url(url)
    with (
        psycopg.connect(plain, autocommit=True, prepare_threshold=None) as first,
        psycopg.connect(plain, autocommit=True, prepare_threshold=None) as second,
    ):
        mine = first.execute("select pg_backend_pid()").fetchone()
        theirs = second.execute("select pg_backend_pid()").fetchone()
        return "transaction" if mine == theirs else None


def spark_checks() -> Iterator[Finding]:
    """Java and versions first; only if they are fine, Spark is started to check its workers."""
    checks = doctor()
    if all(check.ok for check in checks):
        checks = _with_workers()
    for check in checks:
        yield Finding(f"Spark: {check.name}", "ok" if check.ok else "fail", check.text)


def _with_workers() -> list[Check]:
    spark = session("laneway doctor", master="local[2]")
    try:
        return doctor(spark)
    finally:
        spark.stop()


_MOST_NAMED = 5
_CHANNELS_LOOKED = 100
_LATE = timedelta(minutes=1)
_LATELY = timedelta(days=1)
_MOST_LETTERS = 1000


def findings_of_all(found: list[Source]) -> Iterator[tuple[str | None, Finding]]:
    """Each with the name of its database, if there are several; all are asked at the same time."""
    if len(found) == 1 and found[0].name is None:
        check_file(found[0].config)
        yield from ((None, finding) for finding in all_findings(found[0].config))
        return
    with ThreadPoolExecutor(len(found)) as threads:
        asked = [(source.name, threads.submit(_checked, source)) for source in found]
    for name, answer in asked:
        yield from ((name, finding) for finding in answer.result())


def _checked(source: Source) -> list[Finding]:
    try:
        check_file(source.config)
        return list(all_findings(source.config, call_timeout=ANSWER_SECONDS))
    except (LanewayError, typer.BadParameter) as error:
        text = error.message if isinstance(error, typer.BadParameter) else str(error)
        return [Finding("connection", "fail", f"{text}.", "Check the URL.")]


def all_findings(config: Config, **options: Any) -> Iterator[Finding]:
    """This machine first, then the database, then the queues."""
    yield from versions(config)
    with open_config(config, **options) as client:
        connection = _connection(client)
        yield connection
        if connection.level == "fail":
            return
        yield clock_skew(client)
        found = _tried("database", client, lambda client: client.diagnose())
        yield from found
        yield from pooler(config)
        if all(finding.level != "fail" for finding in found if finding.check == "schema"):
            yield from _tried("dead letters", client, _dead_letters)
            yield from _tried("paused channels", client, _channels)
            yield from _tried("schedules", client, _schedules)


def _tried(
    check: str, client: "Queue", look: Callable[["Queue"], Sequence[Finding]]
) -> Sequence[Finding]:
    """A check that fails, e.g. for lack of rights, must not prevent the others."""
    try:
        return look(client)
    except LanewayError as error:
        mend = "Run doctor as the schema's owner, or with the admin role."
        return [Finding(check, "warn", f"Could not be checked: {error}.", mend)]


def _connection(client: "Queue") -> Finding:
    try:
        client.clock()
    except ConnectionUnavailable as error:
        mend = (
            "Check the URL, that the server is running, and that it accepts connections from here."
        )
        return Finding("connection", "fail", f"{error}.", mend)
    except LanewayError as error:
        return Finding("connection", "fail", f"{error}.", "See the error above.")
    return Finding("connection", "ok", "The database answers.")


def _dead_letters(client: "Queue") -> Sequence[Finding]:
    letters = client.dead_letters.list(since=client.clock() - _LATELY, limit=_MOST_LETTERS)
    if not letters:
        return [Finding("dead letters", "ok", "No message became a dead letter in the last day.")]
    count = f"{_MOST_LETTERS} or more" if len(letters) == _MOST_LETTERS else str(len(letters))
    why = Counter(
        f"{letter.queue}, {letter.kind or 'no kind'}: {letter.reason}" for letter in letters
    )
    says = f"Died in the last day: {count} ({_few([name for name, _ in why.most_common()])})."
    return [
        Finding(
            "dead letters", "warn", says, "laneway dead list; then laneway dead redrive or discard."
        )
    ]


def _channels(client: "Queue") -> Sequence[Finding]:
    found = client.channels(paused=True, limit=_CHANNELS_LOOKED)
    paused = [info for info in found if info.stats.waiting]
    names = [f"{info.queue}/{info.channel} ({info.stats.waiting:,})" for info in paused]
    if not names:
        return [Finding("paused channels", "ok", "No paused channel has messages waiting.")]
    says = f"Paused, with messages waiting: {_few(names)}."
    mend = "laneway channels resume CHANNEL --queue QUEUE"
    return [Finding("paused channels", "warn", says, mend)]


def _schedules(client: "Queue") -> Sequence[Finding]:
    found, now = client.schedules.list(), client.clock()
    broken = [f"{s.queue}/{s.name}: {s.error}" for s in found if s.error]
    if broken:
        mend = "Declare them again with a valid message, queue and expression."
        return [Finding("schedules", "fail", f"Cannot fire: {_few(broken)}.", mend)]
    late = [f"{s.queue}/{s.name}" for s in found if s.look_at and now - s.look_at > _LATE]
    if late:
        mend = "No process fires schedules: start a worker, or call queue.fire_schedules()."
        return [Finding("schedules", "fail", f"Overdue: {_few(late)}.", mend)]
    return [Finding("schedules", "ok", f"{len(found)} schedules, none overdue or broken.")]


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
