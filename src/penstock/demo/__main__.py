"""Run the demo: ``python -m penstock.demo``; it exits with 1 if the verdict is bad."""

import sys

from penstock.embedded import EmbeddedPostgres, EmbeddedServerError

from .story import tell


def main() -> int:
    print("Starting an embedded PostgreSQL 18 (a temporary one, on loopback) ...", flush=True)
    try:
        with EmbeddedPostgres() as server:
            return 0 if tell(server.create_database("demo")) else 1
    except EmbeddedServerError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; the server and its data are gone.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
