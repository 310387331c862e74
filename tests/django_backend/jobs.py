"""Tasks of the site; ``seen`` is what they did in this process."""

from typing import Any

from laneway import Constant
from laneway.integrations.django.tasks import task

seen: list[Any] = []
twice = Constant(every=0, attempts=2)


def tenant_of(task: Any, args: list[Any], kwargs: dict[str, Any]) -> str:
    return str(kwargs.get("tenant", "nobody"))


@task
def add(a: int, b: int) -> int:
    return a + b


@task
async def add_async(a: int, b: int) -> int:
    return a + b


@task
def tell(*args: Any, **kwargs: Any) -> None:
    seen.append([list(args), kwargs])


@task
def fail(text: str = "no") -> None:
    seen.append("failed")
    raise ValueError(text)


@task(retry=twice)  # type: ignore[untyped-decorator]
def fail_twice() -> None:
    seen.append("failed")
    raise ValueError("no")


@task(backend="second")  # type: ignore[untyped-decorator]
def fail_in_second() -> None:
    seen.append("failed")
    raise ValueError("no")


@task(backend="second", takes_context=True)  # type: ignore[untyped-decorator]
def second_time_lucky(context: Any, tenant: str) -> int:
    result = context.task_result
    seen.append([context.attempt, [error.traceback for error in result.errors], result.worker_ids])
    if context.attempt == 1:
        raise ConnectionError("try again")
    return 7


@task
def leave() -> None:
    raise SystemExit(3)


@task
def unspeakable() -> Any:
    return object()


@task(channel="tenant-42", key="report")  # type: ignore[untyped-decorator]
def report() -> None:
    seen.append("report")


not_a_task = dict
