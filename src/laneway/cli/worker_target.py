"""Which worker a command runs: from the modules, workers and tasks that it names."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import typer

from .connect import check_file, open_config, settled

if TYPE_CHECKING:
    from laneway import Queue, Tasks, Worker

_HINT = "define one: worker = Worker(queue)"


def load_worker(targets: list[str], url: str | None, schema: str | None) -> "Worker":
    """One worker for everything that the targets name: ``module`` or ``module:name``.

    The first worker counts, with its options; what the others have is added to it. If there are
    only tasks, a worker is made for them.
    """
    from laneway import Worker

    found: list[Worker | Tasks] = []
    for target in targets:
        found.extend(one for one in _named(target) if all(one is not known for known in found))
    workers = [one for one in found if isinstance(one, Worker)]
    worker = workers[0] if workers else Worker(_client(found, url, schema))
    worker.include(*(one for one in found if one is not worker))
    return worker


def _named(target: str) -> "list[Worker | Tasks]":
    from laneway import Tasks, Worker

    name, _, attribute = target.partition(":")
    if not name or target.endswith(":"):
        raise typer.BadParameter(
            f"{target!r} does not name a worker: write module:worker, e.g. jobs:worker"
        )
    module = _import(name)
    there = {key: one for key, one in vars(module).items() if isinstance(one, Worker | Tasks)}
    if not attribute:
        if not there:
            raise typer.BadParameter(f"module {name!r} has no Worker and no Tasks: {_HINT}")
        return list(there.values())
    if attribute in there:
        return [there[attribute]]
    hint = f"use {' or '.join(f'{name}:{key}' for key in there)}" if there else _HINT
    found = getattr(module, attribute, None)
    if found is None:
        raise typer.BadParameter(f"module {name!r} has no {attribute!r}: {hint}")
    raise typer.BadParameter(f"{target} is of type {type(found).__name__}, not a Worker: {hint}")


def _client(found: "list[Worker | Tasks]", url: str | None, schema: str | None) -> "Queue":
    """That of the first tasks that are bound; else the one of the command's settings."""
    for one in found:
        if (client := one._clients.any) is not None:
            bound: Queue = client
            return bound
    from laneway.client.shared.options import UPKEEP_EVERY

    config = settled(url, schema)
    check_file(config)
    return open_config(config, pool_size=10, upkeep_every=UPKEEP_EVERY)


def _import(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # If the module itself fails to import something, its author needs the traceback.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise typer.BadParameter(
            f"no module {error.name!r} in the current folder or installed: check the name, or "
            "start the worker in the folder of the module"
        ) from None
    except KeyError as error:
        # Usually a variable that the module reads from the environment at its import.
        if error.args[0] in os.environ or not str(error.args[0]).isupper():
            raise
        missing = f"module {name!r} needs the environment variable {error.args[0]}: export it first"
        raise typer.BadParameter(missing) from None
