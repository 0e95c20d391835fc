"""The parts of `./run bench audit`."""

from typing import Final

PLAIN: Final = "bench_plain_entry"
"""A table of the audit log's shape and indexes, without triggers."""
WRITERS: Final = 8
