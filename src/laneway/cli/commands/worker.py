"""worker: run a worker that a module defines; workers: list worker processes."""

import logging
import os
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.connect import check_file, open_config
from laneway.cli.exits import Code, in_shell
from laneway.cli.options import Json, Limit, Schema, Urls, age, length
from laneway.cli.output import Column, by_database, emit, emit_all, say, table
from laneway.cli.sources import ended, look_at_all, sources
from laneway.errors import InvalidInput, InvalidOption, LanewayError
from laneway.spelling import nearest

if TYPE_CHECKING:
    from laneway import Tasks, Worker, WorkerInfo
    from laneway.client.shared.options import ClientAddress

_log = logging.getLogger("laneway.cli")

_HINT = "define one: worker = Worker(queue)"


def load_worker(
    targets: list[str], url: list[str] | None, schema: str | None, typed_schema: str | None
) -> "Worker":
    """One worker for everything that the targets name: ``module`` or ``module:name``.

    The first worker counts, with its options; what the others have is added to it. If there are
    only tasks, a worker is made for them. ``typed_schema`` is one that the environment did not
    give.
    """
    from laneway import Worker

    found: list[Worker | Tasks] = []
    for target in targets:
        found.extend(one for one in _named(target) if all(one is not known for known in found))
    workers = [one for one in found if isinstance(one, Worker)]
    own = None if workers else _client(found)
    worker = workers[0] if workers else Worker(own or _opened(url, schema))
    if workers or own is not None:
        _check_place(worker, " ".join(targets), url, typed_schema)
    worker.include(*(one for one in found if one is not worker))
    return worker


def _named(target: str) -> "list[Worker | Tasks]":
    from laneway import Tasks, Worker

    name, _, attribute = target.partition(":")
    if not name or target.endswith(":"):
        raise typer.BadParameter(
            f"{target!r} does not name a worker: write module:worker, e.g. jobs:worker"
        )
    if _is_path(name):
        raise typer.BadParameter(_module_for(name, attribute))
    module = _import(name)
    there = {key: one for key, one in vars(module).items() if isinstance(one, Worker | Tasks)}
    if not attribute:
        if not there:
            raise typer.BadParameter(
                f"module {name!r}{_elsewhere(module)} has no Worker and no Tasks: {_HINT}"
            )
        return list(there.values())
    if attribute in there:
        return [there[attribute]]
    hint = f"use {' or '.join(f'{name}:{key}' for key in there)}" if there else _HINT
    found = getattr(module, attribute, None)
    if found is None:
        raise typer.BadParameter(f"module {name!r} has no {attribute!r}: {hint}")
    raise typer.BadParameter(f"{target} is of type {type(found).__name__}, not a Worker: {hint}")


def _client(found: "list[Worker | Tasks]") -> Any:
    """That of the first tasks that are bound."""
    bound = (one._clients.any for one in found)
    return next((client for client in bound if client is not None), None)


def _check_place(worker: "Worker", target: str, url: list[str] | None, schema: str | None) -> None:
    """Refuses to work elsewhere than the command says: whoever typed the URL of staging must not
    process what is in production."""
    from laneway.drivers.choice import same_database

    typed = {same_database(one.config.url or "") for one in sources(url, schema)} if url else set()
    addresses = _addresses(worker)
    if typed and typed != {same_database(one.url) for one in addresses}:
        option = "--url"
    elif schema is not None and any(schema != one.schema for one in addresses):
        option = "--schema"
    else:
        return
    raise typer.BadParameter(
        f"{target} has a client of its own, on {' and '.join(one.shown for one in addresses)}, "
        f"and {option} does not change that: leave it out, or have the module read the address, "
        'as in Queue(os.environ["DATABASE_URL"])'
    )


def _warn_of_environment(worker: "Worker", typed_url: bool, typed_schema: bool) -> None:
    """A variable may be meant for other commands, or for the application: it only gets a line."""
    from laneway.drivers.choice import same_database
    from laneway.drivers.errors import masked

    url = None if typed_url else os.environ.get("DATABASE_URL")
    schema = None if typed_schema else os.environ.get("LANEWAY_SCHEMA")
    addresses = _addresses(worker)
    here = " and ".join(one.shown for one in addresses)
    with suppress(InvalidOption):  # an application's URL may be one of any database
        if url and all(same_database(url) != same_database(one.url) for one in addresses):
            _log.warning("DATABASE_URL is %s, but the module uses %s", masked(url), here)
    if schema and all(schema != one.schema for one in addresses):
        _log.warning("LANEWAY_SCHEMA is %s, but the module uses %s", schema, here)


def _addresses(worker: "Worker") -> "list[ClientAddress]":
    return [one.queue._address for one in worker._databases]


def _opened(url: list[str] | None, schema: str | None) -> Any:
    """By the command's settings."""
    from laneway.client.shared.options import UPKEEP_EVERY

    opened = {}
    for source in sources(url, schema):
        check_file(source.config)
        client = open_config(source.config, pool_size=10, upkeep_every=UPKEEP_EVERY)
        if source.name is None:
            return client
        opened[source.name] = client
    return opened


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name or name.startswith(".") or name.endswith(".py")


def _module_for(name: str, attribute: str) -> str:
    """What to write instead of a file's path."""
    path = Path(name.replace("\\", "/"))
    with suppress(ValueError):
        path = path.relative_to(Path.cwd())
    module = ".".join(path.parts).removesuffix(".py")
    colon = f":{attribute}" if attribute else ""
    if path.is_absolute() or ".." in path.parts:
        folder, module = path.parent, path.stem
        return f"{name} is not a module: in the folder {folder} write {module}{colon}"
    if not module:
        return f"{name} is not a module: write its name, such as jobs or shop.jobs"
    if not path.with_name(f"{path.stem}.py").is_file() and not path.is_dir():
        near = nearest(module, _modules_in(path.parent))
        hint = f"did you mean {near!r}?" if near else "write a module's name, such as shop.jobs"
        return f"there is no file {name}: {hint}"
    return f"{name} is not a module: write {module}{colon}"


def _modules_in(folder: Path) -> list[str]:
    """Of what is there to import, as it is written."""
    package = "".join(f"{part}." for part in folder.parts)
    files = [each.stem for each in folder.glob("*.py") if each.stem.isidentifier()]
    packages = [each.parent.name for each in folder.glob("*/__init__.py")]
    return [f"{package}{name}" for name in sorted({*files, *packages}) if name != "__init__"]


def _elsewhere(module: ModuleType) -> str:
    """A module of the same name may have been found first, such as Python's own ``queue``."""
    file = Path(module.__file__ or "")
    return "" if file.is_relative_to(Path.cwd()) else f" ({file})"


def _import(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise typer.BadParameter(_not_found(name, error.name)) from None
    except KeyError as error:
        # Usually a variable that the module reads from the environment at its import.
        if error.args[0] in os.environ or not str(error.args[0]).isupper():
            raise _broken(name, error) from error
        missing = f"module {name!r} needs the environment variable {error.args[0]}: export it first"
        raise typer.BadParameter(missing) from None
    except Exception as error:
        raise _broken(name, error) from error


def _not_found(name: str, missing: str) -> str:
    package, _, attribute = name.rpartition(".")
    if hasattr(sys.modules.get(package), attribute):
        return f"{attribute!r} is not a module: write {package}:{attribute}"
    near = nearest(name, _modules_in(Path(*package.split(".")) if package else Path()))
    hint = (
        f"did you mean {near!r}?"
        if near
        else "check the name, or start the worker in the folder of the module"
    )
    return f"no module {missing!r} in the current folder or installed: {hint}"


def _broken(name: str, error: Exception) -> typer.Exit:
    """Says where the module fails, in its author's code. What we or the compiler say needs no
    traceback; of everything else it shows the author's part."""
    own = [one for one in traceback.extract_tb(error.__traceback__) if _of_author(one.filename)]
    where = f"{_short(own[-1].filename)}, line {own[-1].lineno}: " if own else ""
    wrong = isinstance(error, InvalidInput)
    if isinstance(error, SyntaxError):
        say(f"laneway: {_short(error.filename or name)}, line {error.lineno}: {error.msg}")
    elif isinstance(error, ModuleNotFoundError):
        say(f"laneway: {where}no module {error.name!r}: is it installed in this environment?")
    elif isinstance(error, LanewayError) or _by_us(error):
        say(f"laneway: {where}{error}")
    else:
        say("".join(traceback.format_list(own)).rstrip())
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        say(f"laneway: module {name!r} cannot be imported: {said}")
    return typer.Exit(Code.USAGE if wrong else Code.FAILED)


def _by_us(error: Exception) -> bool:
    """A call of ours that does not fit."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return isinstance(error, TypeError) and last == sys.modules["laneway.spelling"].__file__


def _of_author(file: str) -> bool:
    return not file.startswith((*_NOT_THEIRS, "<frozen"))


_NOT_THEIRS = (str(Path(__file__).parents[2]), str(Path(os.__file__).parent))


def _short(file: str) -> str:
    with suppress(ValueError):
        return str(Path(file).resolve().relative_to(Path.cwd()))
    return file


def worker(
    context: typer.Context,
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="MODULE[:NAME]...",
            help="A module, to run all of its workers and tasks, or one of them by name, e.g. "
            "jobs:worker.",
            show_default=False,
        ),
    ],
    queues: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            "-q",
            help="Serve this queue instead of the worker's own; may be repeated.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000,
            help="Messages handled at the same time, instead of the worker's own limit.",
        ),
    ] = None,
    reload: Annotated[
        bool,
        typer.Option("--reload", help="Restart when a .py file below the current folder changes."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether the worker can start.")
    ] = False,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", "--once", help="Stop when no message can be claimed.")
    ] = False,
    max_messages: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many messages.")
    ] = None,
    max_runtime: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Stop after this time, e.g. 1h.")
    ] = None,
    health_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve /livez, /readyz and /metrics on this port."),
    ] = None,
    health_host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address for --health-port; 127.0.0.1 by default, 0.0.0.0 for all interfaces.",
        ),
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Run the handlers on Spark executors.")
    ] = False,
    master: Annotated[
        str, typer.Option(help="With --spark: the Spark master; spark://… or sc://… is a cluster.")
    ] = "local[*,4]",
    stream: Annotated[
        str | None,
        typer.Option(help="With --spark: the stream's name; the queue's name by default."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="With --spark: messages per claim.")] = 1000,
    per_task: Annotated[int, typer.Option(min=1, help="With --spark: messages per task.")] = 50,
    url: Urls = None,
    schema: Schema = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    as_json: Json = False,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C.

    Several modules run in one process: laneway worker shop.jobs shop.mail. The options of the first
    worker apply, unless they are given here. Modules with tasks, but neither a worker nor a client,
    get a worker on --url; if several URLs are given, it serves all of these databases. A module
    with a client of its own decides where it works: a different --url or --schema is refused.

    After the first signal, running handlers finish and the other messages are released; the second
    signal stops at once. With --json the log is JSON too. With --spark, the executors must be able
    to import the worker's module, and spark-submit overrides --master.
    """
    if health_host is not None and health_port is None:
        raise typer.BadParameter("--health-host needs --health-port")
    if reload:
        if check or spark:
            raise typer.BadParameter("--reload cannot be combined with --check or --spark")
        from laneway.cli.reload import run_with_reload

        raise typer.Exit(run_with_reload([word for word in sys.argv[1:] if word != "--reload"]))
    typed = context.get_parameter_source("schema")
    typed_schema = schema if typed is not None and typed.name == "COMMANDLINE" else None
    found = load_worker(targets, url, schema, typed_schema)
    found.override(
        queues=queues or None,
        concurrency=concurrency,
        health_port=health_port,
        health_host=health_host,
    )
    if check:
        _warn_of_environment(found, bool(url), typed_schema is not None)
        _check(" ".join(targets), found, as_json)
        return
    from laneway.cli.output import log_in_processes, log_to_stderr

    log_to_stderr(verbose=verbose, as_json=as_json)
    log_in_processes(verbose=verbose, as_json=as_json)
    _warn_of_environment(found, bool(url), typed_schema is not None)
    if spark:
        if max_messages is not None or max_runtime is not None:
            raise typer.BadParameter("--max-messages and --max-runtime do not work with --spark")
        from laneway.cli.on_spark import run_on_spark

        counts = run_on_spark(found, master, stream, until_empty, batch, per_task)
        if as_json:
            emit(counts)
        return
    from laneway.cli.reload import stop_with_parent

    stop_with_parent()
    found.run(
        until_empty=until_empty,
        max_messages=max_messages,
        max_runtime=None if max_runtime is None else length(max_runtime),
    )


def _check(target: str, found: "Worker", as_json: bool) -> None:
    problems = found.check()
    if as_json:
        emit(
            {
                "worker": target,
                "databases": [one.shown for one in _addresses(found)],
                "queues": found.queues,
                "kinds": found.kinds,
                "problems": problems,
            }
        )
    for problem in problems:
        say(f"laneway: {in_shell(problem)}")
    if problems:
        raise typer.Exit(Code.FAILED)
    where = " and ".join(one.shown for one in _addresses(found))
    queues, kinds = ", ".join(found.queues), ", ".join(found.kinds)
    say(f"{target} can start: queues {queues}; kinds {kinds}; database {where}.")


_COLUMNS = (
    Column("host"),
    Column("pid", right=True),
    Column("state"),
    Column("used", right=True),
    Column("slots", right=True),
    Column("queues"),
    Column("kinds"),
    Column("version", wide=100),
    Column("started", right=True, wide=90),
    Column("seen", right=True),
)


def workers(
    limit: Limit = 1000, url: Urls = None, schema: Schema = None, as_json: Json = False
) -> None:
    """List worker processes, and how busy they are.

    A worker that serves several databases has a row in each.
    """
    found = sources(url, schema)
    answers = look_at_all(found, lambda client: client.workers(limit=limit))
    rows = [(source, worker) for source, listed in answers for worker in listed]
    if as_json:
        emit_all(worker if one.name is None else one.of(asdict(worker)) for one, worker in rows)
    else:
        now = datetime.now(UTC)
        rows.sort(key=lambda row: (row[1].host, row[1].started_at, row[1].id))
        table(*by_database(_COLUMNS, [(source, _row(worker, now)) for source, worker in rows]))
    if not rows and answers:
        say("No worker is running.")
    elif vanished := sum(worker.state == "vanished" for _, worker in rows):
        say(f"Vanished, not seen for 30 seconds: {vanished}. Their leases expire by themselves.")
    ended(found, answers)


def _row(worker: "WorkerInfo", now: datetime) -> tuple[object, ...]:
    return (
        worker.host,
        worker.pid,
        worker.state,
        worker.used,
        worker.slots,
        ", ".join(worker.queues),
        ", ".join(worker.kinds) or "all",
        worker.version,
        age(worker.started_at, now),
        age(worker.seen_at, now),
    )
