"""Why a Spark job failed, in one sentence, out of what Spark wraps around it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.drivers.faults import masked
from penstock.errors import ConnectionUnavailable, PenstockError, SparkFailed

# A worker's error reaches the driver as the text of its traceback; ours ends with our own sentence.
_OURS = re.compile(r"^(?:penstock\.errors\.\w+): (.+)$", re.MULTILINE)
_AWAY = re.compile(rf"^penstock\.errors\.{ConnectionUnavailable.__name__}: ", re.MULTILINE)

# What else Python raised, a driver's or the user's own, is the last line of its traceback.
_RAISED = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+([A-Za-z_][\w.]*(?:: .*)?)$",
    re.MULTILINE,
)

# Spark wraps what its own Python lacks, too.
_LACKING = re.compile(r"No module named '((?:pyarrow|psycopg|penstock)[\w.]*)'")

# The Python that Spark looks for formats with passes over those that it cannot import.
_UNKNOWN = re.compile(r"DATA_SOURCE_NOT_FOUND\].*\bpenstock\b")
_UNKNOWN_MEANS = (
    "Spark's Python cannot import penstock or what it needs: install penstock[spark] for the "
    "Python that PYSPARK_DRIVER_PYTHON or else PYSPARK_PYTHON names"
)

# Py4J says which call it was; what went wrong there is on the next line, after the class.
_CALL = re.compile(r"\AAn error occurred while calling [^\n]+\n: (?:[\w.$]+: )?(?=\S)")


def reason(error: BaseException) -> str:
    """The sentence that says what went wrong, without Spark's stacks around it.

    >>> try:
    ...     frame.write.format("penstock").mode("append").save()
    ... except Exception as error:
    ...     print(reason(error))
    """
    text = str(error)
    ours, lacking = _OURS.findall(text), _LACKING.findall(text)
    if not ours and lacking:
        return f"workers cannot import {lacking[-1]}: install penstock[spark] on each node"
    if not ours and _UNKNOWN.search(text):
        return _UNKNOWN_MEANS
    if not ours:
        ours = _RAISED.findall(text)
    said = _CALL.sub("", text).strip().splitlines()
    return masked(ours[-1] if ours else next(iter(said), type(error).__name__))


@contextmanager
def plainly() -> Iterator[None]:
    """Spark's errors as one sentence, with no stack of the JVM behind it; ours as they are."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        if not is_sparks(error):
            raise
        raise SparkFailed(reason(error)) from None


def is_sparks(error: Exception) -> bool:
    """Known by its name: pyspark is not imported for this."""
    names = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(names & {"pyspark", "py4j", "grpc"})


def is_outage(error: Exception) -> bool:
    """Whether a task could not reach the database, which may be back soon."""
    return isinstance(error, ConnectionUnavailable) or bool(_AWAY.search(str(error)))
