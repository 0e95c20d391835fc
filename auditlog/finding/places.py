"""Where entries are in the tree; the leaves are read apart from them, as on Citus they lie apart."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from django.db.models import QuerySet, Subquery

from auditlog.models import AuditEntry, Leaf, SignedHead
from compliance.core import environments

BLOCK: Final = 1024


def count_under(entries: QuerySet[AuditEntry], size: int) -> int:
    """Return how many of the entries are among the first `size` leaves."""
    ids = entries.order_by().values_list("id", flat=True).iterator(chunk_size=BLOCK)
    leaves, count = Leaf.objects.filter(index__lt=size), 0
    while block := list(islice(ids, BLOCK)):
        count += leaves.filter(entry_id__in=block).count()
    return count


def add_places(entries: Iterable[Any]) -> None:
    """Give each entry `leaf_index` and `erased` of its leaf, and the sizes of the newest checkpoints.

    `leaf_index` is None while it waits; both sizes (`signed_size`, `witnessed_size`) are then 0.
    """
    entries = list(entries)
    alias = environments.current().auditor_alias
    found: QuerySet[Any] = Leaf.objects.using(alias).filter(entry_id__in=[entry.pk for entry in entries])
    sizes = SignedHead.objects.order_by("-size").values("size")
    placed = found.annotate(
        signed_size=Subquery(sizes[:1]), witnessed_size=Subquery(sizes.filter(has_quorum=True)[:1])
    )
    leaves = {leaf.entry_id: leaf for leaf in placed.only("index", "entry_id", "erased")}
    for entry in entries:
        leaf = leaves.get(entry.pk)
        entry.leaf_index, entry.erased = (leaf.index, leaf.erased) if leaf else (None, None)
        entry.signed_size = (leaf and leaf.signed_size) or 0
        entry.witnessed_size = (leaf and leaf.witnessed_size) or 0
