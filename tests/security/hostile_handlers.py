"""Handlers that must never be called; in a module, so that a process finds them too."""

from dataclasses import dataclass

from laneway import Queue, Worker


@dataclass
class Node:
    child: "Node | None" = None


@dataclass
class Order:
    id: int
    note: str = ""


def worker_on(url: str) -> Worker:
    worker = Worker(Queue(url, upkeep_every=None), concurrency=4)
    worker.handler("dict")(take_dict)
    worker.handler("node")(take_node)
    worker.handler("order")(take_order)
    worker.handler("text")(take_text)
    worker.handler("async")(take_order_async)
    worker.handler("process", run="process")(take_order)
    return worker


def take_dict(payload: dict[str, int]) -> None:
    raise AssertionError("called")


def take_node(payload: Node) -> None:
    raise AssertionError("called")


def take_order(payload: Order) -> None:
    raise AssertionError("called")


def take_text(payload: str) -> None:
    raise AssertionError("called")


async def take_order_async(payload: Order) -> None:
    raise AssertionError("called")
