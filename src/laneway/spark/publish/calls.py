"""A frame of arguments as calls of a task, ready to be written."""

from typing import TYPE_CHECKING, Any

from laneway.errors import InvalidCall
from laneway.payload import ARGUMENTS
from laneway.worker.tasks.task import TaskView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FIELDS = frozenset(
    (
        "channel",
        "key",
        "key_window",
        "headers",
        "priority",
        "delay",
        "at",
        "expires_in",
        "expires_at",
        "max_attempts",
    )
)


def calls(frame: "DataFrame", task: TaskView[..., Any]) -> "DataFrame":
    """One call of the task for each row: columns named like its parameters are the arguments, all
    others are fields of the message, such as ``channel``. A null argument is left out.

    Raises InvalidCall for a column that is neither, and for a missing required argument.

    >>> calls(orders, send_receipt).write.format("laneway").option("url", url).save()
    """
    from pyspark.sql.functions import lit, struct, to_json

    parameters = task.parameters
    named = [name for name in frame.columns if name in parameters.hints]
    fields = [name for name in frame.columns if name not in parameters.hints]
    if missing := sorted(parameters.required.difference(named)):
        raise InvalidCall(f"{task.kind} needs the columns {', '.join(missing)}")
    if unknown := [name for name in fields if name not in _FIELDS]:
        raise InvalidCall(
            f"{task.kind} has no parameter {', '.join(unknown)}, nor has a message: drop the "
            f"columns, or rename them to {', '.join(parameters.hints)}"
        )
    if task.replaces:
        raise InvalidCall(
            f"{task.kind} has on_duplicate=: Spark publishes nothing where a key is in use, and "
            'replaces nothing; write using(on_duplicate="keep") for the frame'
        )
    kept = {name: lit(value) for name, value in task.fixed_options.items() if name not in fields}
    payload = to_json(struct(*named)) if named else lit("{}")
    return frame.select(
        payload.alias("payload"),
        lit(task.kind).alias("kind"),
        lit(ARGUMENTS).alias("content_type"),
        *(value.alias(name) for name, value in kept.items()),
        *fields,
    )
