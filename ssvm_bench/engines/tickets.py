"""Tickets: a node sees the results folder, has the same program, and its work is still wanted.

A ticket is a folder ``<results_dir>/.engines/<name>`` with a file ``token``. A node that does not
find it makes no run. To remove it withdraws what it was issued for: jobs that wait end at once, and
runs after their iteration, on whatever node, with no word to the engine.
"""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.engines.contract import RefusedError, Ticket
from ssvm_bench.results import checkpoint_file
from ssvm_bench.results.provenance import versions

FOLDER = ".engines"
_TOKEN = "token"


def issue(results_dir: Path) -> Ticket:
    """Return a new ticket.

    Raises
    ------
    RunFailedError
        If the results folder cannot be written.
    """
    name = secrets.token_hex(6)
    ticket = Ticket(
        results_dir.absolute() / FOLDER / name, name, checkpoint_file.program(), versions()
    )
    try:
        files.write(ticket.folder / _TOKEN, name.encode())
    except OSError as error:
        raise RunFailedError(
            f"Cannot write {ticket.folder}: {error.strerror or error}. Make room or choose another "
            "folder with results_dir=…"
        ) from error
    return ticket


def withdraw(ticket: Ticket) -> None:
    """Make a ticket worthless, and remove all that is in its folder."""
    files.remove(ticket.folder / _TOKEN)
    files.remove(ticket.folder)


def is_valid(ticket: Ticket) -> bool:
    """Tell whether this node sees the ticket's folder, and the ticket is still wanted."""
    try:
        return files.read(ticket.folder / _TOKEN, 100) == ticket.name.encode()
    except OSError:
        return False


def problem(ticket: Ticket) -> RefusedError | None:
    """Return why no run is made on this node, if that is so."""
    if not is_valid(ticket):
        return RefusedError(
            f"The node {socket.gethostname()} does not see the results folder "
            f"{ticket.folder.parents[1]}. Choose one that all nodes share, with results_dir=…"
        )
    mine = checkpoint_file.program()
    if mine == ticket.program:
        return None
    here = versions()
    names = sorted({*here, *ticket.versions})
    differ = [
        f"{name} {here.get(name, 'none')} in place of {ticket.versions.get(name, 'none')}"
        for name in names
        if here.get(name) != ticket.versions.get(name)
    ]
    return RefusedError(
        f"The node {socket.gethostname()} has another version of the program: "
        f"{', '.join(differ) or 'other sources of ssvm-bench'}. Install the same one there, and "
        "start its workers again."
    )
