"""A process that fires schedules as fast as it can, until it is killed."""

import sys

from laneway import Queue


def main(url: str, schema: str) -> None:
    with Queue(url, schema=schema) as queue:
        print("ready", flush=True)  # noqa: T201
        while True:
            queue.fire_schedules(limit=5)


if __name__ == "__main__":
    main(*sys.argv[1:])
