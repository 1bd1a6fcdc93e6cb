"""The program: ``ssvm-bench``, and ``python -m ssvm_bench``.

Signals and output are taken care of before anything else is imported, and until the very end.
"""

import sys

from ssvm_bench.base import interrupts, outputs


def main() -> None:
    """Run the command line and exit."""
    interrupts.end_at_signals("ssvm-bench: error: Interrupted.")
    interrupts.refuse_exit()
    outputs.protect()
    from ssvm_bench.cli.commands import main as command_line

    try:
        command_line()
    except SystemExit as end:
        status = end.code
    interrupts.ignore_signals()
    lost = outputs.lost_results()
    if lost is not None and not status:
        status = 1
        if not isinstance(lost, BrokenPipeError):  # else the reader has seen enough
            reason = f"Cannot write to standard output: {lost.strerror}."
            print(f"ssvm-bench: error: {reason} Files are written as ever.", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
