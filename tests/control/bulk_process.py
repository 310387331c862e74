"""A process that works on a bulk operation: ``python bulk_process.py URL ID``."""

import sys

from laneway import Queue


def main(url: str, operation_id: str) -> None:
    with Queue(url, upkeep_every=None) as queue:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        queue.operations.run(int(operation_id))


if __name__ == "__main__":
    main(*sys.argv[1:])
