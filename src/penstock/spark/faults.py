"""Why a Spark job failed, in one sentence, out of what Spark wraps around it."""

import re

from penstock.drivers.faults import masked

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
