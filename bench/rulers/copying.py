"""COPY alone: how fast one process gives PostgreSQL finished rows over one connection."""

import os
import time
from collections.abc import Sequence
from dataclasses import astuple
from datetime import UTC, datetime

import psycopg

from bench.rulers.rows import ALL_COLUMNS, StoredRow

STATEMENT = f"COPY ruler_pgbench ({ALL_COLUMNS}) FROM STDIN".encode()


def copied(url: str, batches: Sequence[Sequence[StoredRow]], seconds: float) -> float:
    """Rows a second, a batch a transaction; the same batches again and again, under new ids and times."""
    made, stored = [_text(batch) for batch in batches], 0
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        began = time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds:
            lines = made.pop(0)
            made.append(lines)
            with cursor.copy(STATEMENT) as copy:
                copy.write(_dated(lines))
            stored += len(lines)
    return stored / elapsed


def _text(batch: Sequence[StoredRow]) -> list[bytes]:
    """Lines of COPY's text format but for ids and times."""
    return ["\t".join(map(_escaped, astuple(row))).encode() + b"\n" for row in batch]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")


def _dated(lines: Sequence[bytes]) -> bytes:
    """The lines with fresh UUIDv7s (RFC 9562) and the time of now, twice."""
    now = datetime.now(UTC).isoformat()
    digits = f"{time.time_ns() // 1_000_000:012x}"
    first, chance = f"{digits[:8]}-{digits[8:]}-7", os.urandom(9 * len(lines)).hex()
    parts = []
    for place, line in enumerate(lines):
        some = chance[18 * place : 18 * place + 18]
        parts.append(f"{first}{some[:3]}-8{some[3:6]}-{some[6:]}\t{now}\t{now}\t".encode())
        parts.append(line)
    return b"".join(parts)
