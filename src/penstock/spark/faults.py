"""Why a Spark job failed, in one sentence, out of what Spark wraps around it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.drivers.faults import masked
from penstock.errors import PenstockError, SparkFailed

# A worker's error reaches the driver as the text of its traceback; ours ends with our own sentence.
_OURS = re.compile(r"^(?:penstock\.errors\.\w+): (.+)$", re.MULTILINE)


def reason(error: BaseException) -> str:
    """The sentence that says what went wrong, without Spark's stacks around it.

    >>> try:
    ...     frame.write.format("penstock").mode("append").save()
    ... except Exception as error:
    ...     print(reason(error))
    """
    text = str(error)
    ours = _OURS.findall(text)
    sentence = ours[-1] if ours else next(iter(text.strip().splitlines()), type(error).__name__)
    return masked(sentence)


@contextmanager
def plainly() -> Iterator[None]:
    """Spark's errors as one sentence, with no stack of the JVM behind it; ours as they are."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        if not _of_spark(error):
            raise
        raise SparkFailed(reason(error)) from None


def _of_spark(error: Exception) -> bool:
    names = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(names & {"pyspark", "py4j", "grpc"})
