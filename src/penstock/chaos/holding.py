"""Connections that get in the way: an old snapshot, and locks that all writers wait for."""

from collections.abc import Callable
from contextlib import suppress

from .outside import Outside
from .stage import Stage, sql

SNAPSHOT = {
    "postgresql": "begin isolation level repeatable read",
    "mariadb": "start transaction with consistent snapshot",
    "sqlite": "begin",
}


class Holder:
    """Each answers how to let go."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def snapshot(self) -> Callable[[], None]:
        return self._hold(SNAPSHOT[self._stage.engine], sql(self._stage.engine, "effects"))

    def lock(self) -> Callable[[], None]:
        begin = [] if self._stage.engine == "sqlite" else ["begin"]
        return self._hold(*begin, sql(self._stage.engine, "hold"))

    def reaches_server(self) -> bool:
        try:
            outside = Outside(self._stage)
            outside.say(sql(self._stage.engine, "effects"))
        except Exception:
            return False
        outside.close()
        return True

    def _hold(self, *statements: str) -> Callable[[], None]:
        outside = Outside(self._stage)
        # Another may hold it, or the server may be gone: then there is nothing to hold.
        with suppress(Exception):
            for statement in statements:
                outside.say(statement)
        return outside.close
