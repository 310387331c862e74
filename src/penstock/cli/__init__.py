"""The command line, one module per noun.

Data goes to stdout, talk to stderr. Modules import the client, drivers and rich only inside the
commands that need them, so that ``penstock --help`` stays quick.
"""

import sys


def main() -> None:
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit('The command line needs an extra: pip install "penstock[cli]"')
    app(prog_name="penstock")


__all__ = ["main"]
