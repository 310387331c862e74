"""Defects of the worker, on PostgreSQL."""

# Pieces of code as they stand in the package, in lines of their own length.
# ruff: noqa: E501

from .mutant import Mutant, python

_EXECUTOR = "worker/execute/executor.py"

MUTANTS: list[Mutant] = [
    python("the worker acknowledges before the handler returns", "completed_unworked", _EXECUTOR,
        ('if handler.ack == "first":\n                await', "if True:\n                await")),
    python("a handler that failed is completed", "completed_unworked", "worker/job.py",
        ('    if isinstance(error, Defer | Fail | Throttled):\n        return error\n', "    return COMPLETE\n")),
    python("the completion comes before the effect", "effects", _EXECUTOR,
        ("            placed, named = _arguments(job, handler, message, connection)\n"
         "            result = _finished(handler, await handler.function(*placed, **named))\n",
         "            await self._database.run(self._settle_plan(job, after_return(job, handler, None)))\n"
         "            placed, named = _arguments(job, handler, message, connection)\n"
         "            result = _finished(handler, await handler.function(*placed, **named))\n")),
    python("a failed handler's effect is committed", "effects", "worker/execute/transactions.py",
        ("            yield connection\n\n    @contextmanager\n",
         "            failure = None\n"
         "            try:\n"
         "                yield connection\n"
         "            except ValueError as error:\n"
         "                failure = error\n"
         "        if failure:\n"
         "            raise failure\n\n    @contextmanager\n")),
    python("nobody extends the leases", "expired_unexplained", "worker/heartbeat/process.py",
        ("due = [held for held in leases if _is_due(held, lease)]", "due: list[Lease] = []")),
    python("the clock is not looked at before a start", "late_starts", "worker/execute/pool.py",
        ("if job.deadline > now() or await self._lease_check.regain(job):", "if True:"), faults="stop"),
    python("a handler is not told that its lease is lost", "zombies", "worker/execute/pool.py",
        ('            self.interrupt(job, "lost")\n', ""), faults="stop"),
    python("a stop forgets what runs", "expired_unexplained", "worker/job.py",
        ('    if job.interruption == "shutdown":\n        return GIVE_BACK\n',
         '    if job.interruption == "shutdown":\n        return LEAVE\n'), faults="term"),
]  # fmt: skip
