"""Make faults until the time is over, and print how many of each kind there were, and failed."""

import argparse
import multiprocessing
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.faults.case import campaign

CAMPAIGNS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in ("__init__", "__main__", "case")
)
"""Modules with ``cases(rng, folder)``, an endless iterator of `Case`; the folder is empty."""


def main() -> int:
    """Run the campaigns in turn; return 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help=", ".join(CAMPAIGNS))
    parser.add_argument("--minutes", type=float, default=60.0, help="of all campaigns together")
    parser.add_argument("--seed", type=int, default=0, help="of the faults (default: 0)")
    arguments = parser.parse_args()
    names = arguments.campaigns or CAMPAIGNS
    if unknown := set(names) - set(CAMPAIGNS):
        parser.error(f"no campaign {', '.join(sorted(unknown))}; valid: {', '.join(CAMPAIGNS)}")
    made: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for name in names:
        # in a process of its own: one campaign leaves nothing to the next
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            seconds = 60 * arguments.minutes / len(names)
            counts = process.submit(campaign, name, seconds, arguments.seed).result()
        for total, count in zip((made, failed), counts, strict=True):
            total.update({(name, kind): number for kind, number in count.items()})
    print(f"\n{'campaign':12} {'fault':48} {'made':>8} {'failed':>8}")
    for key in sorted(made):
        print(f"{key[0]:12} {key[1]:48} {made[key]:8} {failed[key]:8}")
    print(f"{'all':61} {made.total():8} {failed.total():8}")
    return int(failed.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
