"""The command line.

Data goes to stdout, messages for people to stderr. Modules import the client, drivers
and rich only inside the commands that need them, so that ``laneway --help`` stays fast.
"""

import sys


def main() -> None:
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit('The command line needs an extra: pip install "laneway[cli]"')
    from .output import OutputLost, set_up_streams

    set_up_streams()
    try:
        app(prog_name="laneway")
    except OutputLost as lost:
        sys.exit(1 if lost.reader_has_enough else f"laneway: {lost}")


__all__ = ["main"]
