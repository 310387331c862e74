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
    from .streams import OutputLost, set_up_streams

    set_up_streams()
    try:
        app(prog_name="penstock")
    except OutputLost as lost:
        sys.exit(1 if lost.reader_has_enough else f"penstock: {lost}")


__all__ = ["main"]
