"""The program: ``ssvm-bench``, and ``python -m ssvm_bench``.

Signals and output are taken care of before anything else is imported, and until the very end.
"""

import os
import signal
import sys

from ssvm_bench import NO_WINDOWS

INTERRUPTED = "ssvm-bench: error: Interrupted."


def main() -> None:
    """Run the command line and exit."""
    if sys.platform == "win32":
        sys.exit(f"ssvm-bench: error: {NO_WINDOWS}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)  # while the handler is imported that replaces it
    from ssvm_bench.base import interrupts, messages

    interrupts.end_at_signals(INTERRUPTED)
    interrupts.refuse_exit()
    messages.protect()
    from ssvm_bench.cli.commands import main as command_line

    try:
        command_line()
    except SystemExit as end:
        status = end.code
    interrupts.ignore_signals()
    lost = messages.lost_results()
    if not (status or lost is None or isinstance(lost, BrokenPipeError)):
        # a closed pipe is no failure: its reader, such as head, has seen enough
        status = 1
        reason = f"Cannot write to standard output: {lost.strerror}."
        print(f"ssvm-bench: error: {reason} Files are written as ever.", file=sys.stderr)
    sys.exit(status)


def _end(*_: object) -> None:
    """End the process at once, with a message."""
    try:
        os.write(2, f"{INTERRUPTED}\n".encode())
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
