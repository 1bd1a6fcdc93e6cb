"""A campaign of faults against the program, by the hour; ``python -m tests.faults --help``.

No part of ``make test``: every kind of fault has a small test there. A module here makes one
fault after the other, at random, for as long as it is asked to, and says of each whether the
program held.
"""
