"""The reason why a Spark job failed, in one sentence: our errors travel without a stack trace, and
the sentence is taken out of what Spark makes of all others."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, TypeVar

from laneway.drivers.errors import masked
from laneway.errors import ConnectionUnavailable, LanewayError, SparkFailed

T = TypeVar("T")


class JobIsOver(LanewayError):
    """Spark gave up the job, or another attempt of the task was faster."""


# The driver gets a worker's error as text: the name of our error and its sentence, after what Spark
# says itself, or as the last line of a traceback.
_OURS = re.compile(r"(?<![\w.])laneway\.errors\.\w+: (.+)$", re.MULTILINE)
_AWAY = re.compile(r"(?<![\w.])laneway\.errors\.(ConnectionUnavailable|OutcomeUnknown): ")

# Other errors, of a driver or of the user's code: the last line of the traceback.
_RAISED = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+([A-Za-z_][\w.]*(?:: .*)?)$",
    re.MULTILINE,
)

# A module that is missing on a worker.
_LACKING = re.compile(r"No module named '((?:pyarrow|psycopg|laneway)[\w.]*)'")

# Spark looks for formats with a Python of its own, which skips modules that it cannot import.
_UNKNOWN = re.compile(r"DATA_SOURCE_NOT_FOUND\].*\blaneway\b")
_UNKNOWN_MEANS = (
    "Spark's Python cannot import laneway or what it needs: install laneway[spark] for the "
    "Python that PYSPARK_DRIVER_PYTHON or else PYSPARK_PYTHON names"
)

# Py4J names the call on the first line; the error is on the next one, after its class.
_CALL = re.compile(r"\AAn error occurred while calling [^\n]+\n: (?:[\w.$]+: )?(?=\S)")


def reason(error: BaseException) -> str:
    """The sentence that says what went wrong, without Spark's stack traces.

    >>> try:
    ...     frame.write.format("laneway").mode("append").save()
    ... except Exception as error:
    ...     print(reason(error))
    """
    text = str(error)
    ours, lacking = _OURS.findall(text), _LACKING.findall(text)
    if not ours and lacking:
        return f"workers cannot import {lacking[-1]}: install laneway[spark] on each node"
    if not ours and _UNKNOWN.search(text):
        return _UNKNOWN_MEANS
    if not ours:
        ours = _RAISED.findall(text)
    said = _CALL.sub("", text).strip().splitlines()
    return masked(ours[-1] if ours else next(iter(said), type(error).__name__))


# What Spark calls in its Python processes. Not streamReader: after an error of it Spark fails once
# more, and only the traceback still has ours.
_CALLED = (
    *("schema", "reader", "writer", "streamWriter"),
    *("partitions", "read", "pushFilters", "latestOffset", "prepareForTriggerAvailableNow"),
    *("write", "commit"),
)


def brief_errors(kind: type[T]) -> type[T]:
    """A part of the data source whose errors say their sentence and nothing else. Spark would send
    them with the traceback of its process, a page about nothing that the user wrote."""
    for name in _CALLED:
        if name in vars(kind):
            setattr(kind, name, _briefly(vars(kind)[name]))
    return kind


def _briefly(method: Callable[..., Any]) -> Callable[..., Any]:
    if isgeneratorfunction(method):

        @wraps(method)
        def generate(*args: Any, **named: Any) -> Iterator[Any]:
            with _without_traceback():
                yield from method(*args, **named)

        return generate

    @wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        with _without_traceback():
            return method(*args, **named)

    return call


@contextmanager
def _without_traceback() -> Iterator[None]:
    """Only in a process of Spark's own, which ends after an error: it serves no other code."""
    try:
        yield
    except LanewayError:
        program = getattr(sys.modules.get("__main__"), "__spec__", None)
        if program is not None and program.name.startswith("pyspark."):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


@contextmanager
def plainly() -> Iterator[None]:
    """Raises Spark's errors as SparkFailed with one sentence and no stack of the JVM. Ours stay as
    they are."""
    try:
        yield
    except LanewayError:
        raise
    except Exception as error:
        if not is_sparks(error):
            raise
        raise SparkFailed(reason(error)) from None


def is_sparks(error: Exception) -> bool:
    """By the module's name: pyspark is not imported for this."""
    names = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(names & {"pyspark", "py4j", "grpc"})


def is_outage(error: Exception) -> bool:
    """Whether a task could not reach the database, so that trying again may help."""
    return isinstance(error, ConnectionUnavailable) or bool(_AWAY.search(str(error)))
