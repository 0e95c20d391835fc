"""The rows of a sweep, each for itself."""

import logging
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

from django.db import Error, connections

from compliance.core import environments
from compliance.core.errors import Unavailable

log = logging.getLogger(__name__)

Row = TypeVar("Row")
CALLS_SHOWN: Final = 3


def each(
    rows: Iterable[Row], work: Callable[[Row], int], *, postpone: Callable[[Row], object] | None = None
) -> int:
    """Call `work`, which opens a transaction of its own, with each row; return the sum of its results.

    A row that fails is logged without its contents and left for a later run, which `postpone` may put off;
    the others go on. Raises what every row would meet: Unavailable, and `django.db.Error` if the connection
    is lost.
    """
    total = 0
    for row in list(rows):
        try:
            total += work(row)
        except Unavailable:
            raise
        # Whatever is wrong with a row, it must not hold up the others.
        except Exception as error:
            if isinstance(error, Error) and not connections[environments.current().alias].is_usable():
                raise
            # No message: the database's quotes values.
            calls = traceback.extract_tb(error.__traceback__)[: -CALLS_SHOWN - 1 : -1]
            where = ", ".join(f"{Path(call.filename).stem}.{call.name}:{call.lineno}" for call in calls)
            kind = type(error).__name__
            log.error("row %s of a sweep failed and is left for later: %s in %s", row, kind, where)
            if postpone is not None:
                postpone(row)
    return total
