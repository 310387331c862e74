"""A development server in the foreground: same data and same port at every start."""

import os
import signal
import sys
from pathlib import Path

from .mariadb import EmbeddedMariaDB
from .postgresql import EmbeddedPostgres
from .server import DirectoryInUse, EmbeddedServer, EmbeddedServerError, remembered_port

DATABASES = ("postgresql", "mariadb")
_MARIADB_DATABASE = "dev"


def default_directory(database: str) -> Path:
    """Under ``XDG_DATA_HOME``; as root under /var/lib, because the server then runs as nobody."""
    home = os.environ.get("XDG_DATA_HOME")
    if home is None:
        home = "/var/lib" if os.geteuid() == 0 else "~/.local/share"
    return Path(home).expanduser() / "laneway" / database


def run_server(
    database: str,
    directory: Path | None = None,
    *,
    port: int | None = None,
    temporary: bool = False,
) -> int:
    """Runs the server until Ctrl-C or SIGTERM; returns the exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    place = None if temporary else (directory or default_directory(database)).absolute()
    server = _server(database, place, port)
    try:
        with server:
            try:
                _announce(server, temporary)
                signal.pause()
            finally:
                _ignore_signals()  # a second Ctrl-C must not leave the server running
    except DirectoryInUse as error:
        return _refuse(f"{error}{_running_at(database, place)}")
    except EmbeddedServerError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error}: choose another folder with --directory")
    except KeyboardInterrupt:
        _ignore_signals()
        _say("Stopped." if temporary else "Stopped; the data is kept for the next start.")
    return 0


def _server(database: str, directory: Path | None, port: int | None) -> EmbeddedServer:
    if database == "mariadb":
        return EmbeddedMariaDB(directory, port=port)
    return EmbeddedPostgres(directory, port=port)


def _announce(server: EmbeddedServer, temporary: bool) -> None:
    if isinstance(server, EmbeddedMariaDB):
        server.execute(f"create database if not exists {_MARIADB_DATABASE}")
    if server.replaced_port is not None:
        _say(
            f"Port {server.replaced_port} of the last start is in use by another program; "
            f"the port is {server.port} from now on, so export DATABASE_URL again."
        )
    kept = "is deleted then" if temporary else "is kept for the next start"
    _say(f"Ctrl-C stops the server; its data in {server.directory} {kept}.")
    # Last: a script that reads this line may stop the server at once.
    sys.stdout.write(f"export DATABASE_URL={_url(server)}\n")
    sys.stdout.flush()


def _url(server: EmbeddedServer) -> str:
    if isinstance(server, EmbeddedMariaDB):
        return server.url(_MARIADB_DATABASE)
    return server.url()


def _running_at(database: str, directory: Path | None) -> str:
    port = directory and remembered_port(directory)
    if not port:
        return ""
    server = _server(database, None, None)
    server.port = port
    return f", with DATABASE_URL={_url(server)}"


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _refuse(reason: str) -> int:
    _say(f"laneway: {reason}")
    return 1


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
