"""One call of every verb of the operator, in a queue with the channels mine/a and theirs/b."""

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from laneway import Queue
from laneway.operator import Operator

MINE, THEIRS = "mine/a", "theirs/b"


@dataclass
class World:
    """Ids by channel: a waiting, a scheduled and a completed message, and a dead letter each."""

    queue: Queue
    waiting: dict[str, int]
    scheduled: dict[str, int]
    dead: dict[str, int]
    operations: dict[str, int]
    done: dict[str, int]


@contextmanager
def a_world(path: Path | None = None) -> Iterator[World]:
    """A copy of the one that was made first: installing takes a while."""
    with TemporaryDirectory() as folder:
        path = path or Path(folder) / "jobs.db"
        copyfile(_made(), path)
        with Queue(f"sqlite:///{path}", upkeep_every=None) as queue:
            yield World(queue, *_IDS)


_IDS: tuple[dict[str, int], ...] = ({}, {}, {}, {}, {})
_FOLDER = TemporaryDirectory(prefix="laneway-operator-")
atexit.register(_FOLDER.cleanup)


@cache
def _made() -> Path:
    path = Path(_FOLDER.name) / "jobs.db"
    with Queue(f"sqlite:///{path}", upkeep_every=None) as queue:
        queue.install()
        _fill(World(queue, *_IDS))
    return path


def _fill(world: World) -> None:
    queue = world.queue
    for channel in (MINE, THEIRS):
        queue.publish(f"dead of {channel}", channel=channel, kind="mail")
        for message in queue.claim():
            message.fail("broken")
            world.dead[channel] = message.id
        world.done[channel] = queue.publish(channel, channel=channel, keep_result=3600).id or 0
        for message in queue.claim():
            message.complete(result=f"result of {channel}")
    for channel in (MINE, THEIRS):
        world.waiting[channel] = queue.publish(channel, channel=channel).id or 0
        world.scheduled[channel] = queue.publish(channel, channel=channel, delay=3600).id or 0
        operation = queue.operations.start("redrive", channel=channel, kind="none", expected=0)
        world.operations[channel] = operation.id
        queue.schedule(f"of {channel}", every=3600, channel=channel)
    with queue.flow("import", queue="imports") as flow:
        flow.add(1, channel=THEIRS, delay=3600)
        flow.add(2, channel=THEIRS)
    for message in queue.claim(queues=["imports"]):
        message.fail("broken")
        world.dead["flow"] = message.id
    queue.pause(kind="sms")
    queue.limits["api"].set(concurrency=5)
    queue.topic("orders").subscribe()
    queue.schedule("of a topic", every=3600, topic="orders", channel=MINE)


Call = Callable[[Operator, World, str], Any]

CALLS: dict[str, Call] = {
    "stats": lambda o, w, c: o.stats(),
    "channels": lambda o, w, c: o.channels(),
    "channel": lambda o, w, c: o.channel(c),
    "totals": lambda o, w, c: o.totals(),
    "diagnose": lambda o, w, c: o.diagnose(),
    "clock": lambda o, w, c: o.clock(),
    "minutes": lambda o, w, c: o.minutes(),
    "workers": lambda o, w, c: o.workers(),
    "audit": lambda o, w, c: o.audit(),
    "dead_letter_groups": lambda o, w, c: o.dead_letter_groups(),
    "settings": lambda o, w, c: o.settings(),
    "schema_version": lambda o, w, c: o.schema_version(),
    "messages": lambda o, w, c: o.messages(),
    "message": lambda o, w, c: o.message(w.waiting[c]),
    "payload": lambda o, w, c: o.payload(w.waiting[c]),
    "saved_state": lambda o, w, c: o.saved_state(w.waiting[c]),
    "history": lambda o, w, c: o.history(w.dead[c]),
    "stored_result": lambda o, w, c: o.stored_result(w.done[c]),
    "dead_letters": lambda o, w, c: o.dead_letters(),
    "count_dead_letters": lambda o, w, c: o.count_dead_letters(kind="mail"),
    "limit": lambda o, w, c: o.limit(c, concurrency=3),
    "shared_limits": lambda o, w, c: o.shared_limits(),
    "set_shared_limit": lambda o, w, c: o.set_shared_limit("api", concurrency=3),
    "remove_shared_limit": lambda o, w, c: o.remove_shared_limit("api"),
    "pause_channel": lambda o, w, c: o.pause_channel(c),
    "resume_channel": lambda o, w, c: o.resume_channel(c),
    "fairness": lambda o, w, c: o.fairness(),
    "set_fairness": lambda o, w, c: o.set_fairness("time"),
    "pauses": lambda o, w, c: o.pauses(),
    "pause": lambda o, w, c: o.pause(kind="mail", duration=60),
    "resume": lambda o, w, c: o.resume(kind="sms"),
    "run_now": lambda o, w, c: o.run_now([w.scheduled[c]]),
    "remove_channel": lambda o, w, c: o.remove_channel(c),
    "configure": lambda o, w, c: o.configure(history_days=3),
    "cancel": lambda o, w, c: o.cancel([w.waiting[c]]),
    "publish": lambda o, w, c: o.publish("by hand", channel=c),
    "redrive": lambda o, w, c: o.redrive([w.dead[c]]),
    "discard": lambda o, w, c: o.discard([w.dead[c]]),
    "preview": lambda o, w, c: o.preview(channel=c),
    "start_redrive": lambda o, w, c: o.start_redrive(channel=c, expected=1),
    "start_discard": lambda o, w, c: o.start_discard(channel=c, expected=1),
    "operations": lambda o, w, c: o.operations(),
    "operation": lambda o, w, c: o.operation(w.operations[c]),
    "cancel_operation": lambda o, w, c: o.cancel_operation(w.operations[c]),
    "run_operation": lambda o, w, c: o.run_operation(w.operations[c]),
    "schedules": lambda o, w, c: o.schedules(),
    "schedule": lambda o, w, c: o.schedule(f"of {c}"),
    "pause_schedule": lambda o, w, c: o.pause_schedule(f"of {c}"),
    "resume_schedule": lambda o, w, c: o.resume_schedule(f"of {c}"),
    "run_schedule": lambda o, w, c: o.run_schedule(f"of {c}"),
    "remove_schedule": lambda o, w, c: o.remove_schedule(f"of {c}"),
    "subscriptions": lambda o, w, c: o.subscriptions(),
    "subscribe": lambda o, w, c: o.subscribe("orders"),
    "unsubscribe": lambda o, w, c: o.unsubscribe("orders"),
    "flows": lambda o, w, c: o.flows(),
    "flow": lambda o, w, c: o.flow(1),
    "flow_nodes": lambda o, w, c: o.flow_nodes(1),
    "flow_place": lambda o, w, c: o.flow_place(w.dead["flow"]),
    "flows_with_dead": lambda o, w, c: o.flows_with_dead(),
    "dead_nodes": lambda o, w, c: o.dead_nodes(1),
    "redrive_flow": lambda o, w, c: o.redrive_flow(1),
    "cancel_flow": lambda o, w, c: o.cancel_flow(1),
}
