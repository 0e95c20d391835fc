"""The threshold rule: how many high-risk events within which time stop an agent. Pure.

`events.ingest.threshold` counts the same in PostgreSQL under the agent's lock; a test holds the two together.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta


def is_breach(received: Sequence[datetime], *, strikes: int, window: timedelta) -> bool:
    """Return whether the last of an agent's high-risk events, given by times of receipt in order, stops it.

    Both ends of the window count.
    """
    return len(received) >= strikes and received[-1] - received[-strikes] <= window
