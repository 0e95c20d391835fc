"""Verify the log of the current environment from its rows up, in one snapshot; then its queue.

Every leaf is hashed anew and compared with the tile of the leaves; the tiles above, the head and the root of
each checkpoint are computed from those. Memory does not grow with the log.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from auditlog.models import SignedHead
from auditlog.sealing.tree import Head, StoredTiles, head
from auditlog.tlog.errors import TlogError
from auditlog.tlog.merkle import EMPTY_ROOT
from auditlog.tlog.notes import Note
from auditlog.tlog.tiles import FULL, HASH, WIDTH, Coordinates, perfect_root
from auditlog.verifying import completeness
from auditlog.verifying.contents import Naming, recomputed
from auditlog.verifying.findings import MOST_KEPT, Damage, Flaw, Verdict
from auditlog.verifying.recount import Recount
from auditlog.verifying.stillness import contents_kept
from auditlog.verifying.trust import Trust
from compliance.core import environments
from compliance.stores import sql

BLOCK: Final = 64 * WIDTH
STATEMENT_SECONDS: Final = 3600
# A look-up for each entry in the order of leaves; other plans would read the whole table for each block.
_PLANS: Final = "; ".join(f"SET LOCAL enable_{plan} = {{0}}" for plan in ("hashjoin", "mergejoin", "sort"))
_LOOK_UPS: Final = _PLANS.format("off")
_ANY: Final = _PLANS.format("on")

Tell = Callable[[int, int, float], None]
"""Takes progress: leaves done, leaves of the tree, seconds since the start."""


@dataclass(frozen=True)
class Claim:
    """Someone's statement that the first `size` leaves have this root."""

    size: int
    root: bytes
    source: str


@dataclass
class VerifiedLog:
    """The verdict, and the newest checkpoint that a trusted key signed, as a note."""

    verdict: Verdict
    newest: SignedHead | None = None


def verify(*, trust: Trust, claims: Iterable[Claim], tell: Tell) -> VerifiedLog:
    """Verify the current environment's log; it must also contain what is claimed of it."""
    with contents_kept():
        with environments.snapshot(timeout_seconds=STATEMENT_SECONDS):
            found = _Run(head(), trust, sorted(claims, key=lambda claim: claim.size)).result(tell)
        found.verdict.add(*completeness.queue_flaws(timeout_seconds=STATEMENT_SECONDS))
    return found


@dataclass
class _Run:
    head: Head
    trust: Trust
    claims: Sequence[Claim]
    verdict: Verdict = field(default_factory=lambda: Verdict(environments.current().value))
    naming: Naming = field(default_factory=Naming)
    newest: SignedHead | None = None
    signed: int = 0
    witnessed: int = 0
    checkpoints: int = 0
    _last_contained: int = 0
    _lost: int = 0

    def result(self, tell: Tell) -> VerifiedLog:
        began = time.monotonic()
        tree = Recount(self._compare_upper)
        self._check_rolled_back()
        sql.execute(_LOOK_UPS)
        size = min(self.head.size, WIDTH * completeness.leaf_tiles())
        for start in range(0, size, BLOCK):
            self._verify_block(tree, start, min(size, start + BLOCK))
            tell(tree.size, size, time.monotonic() - began)
        sql.execute(_ANY)
        for place, tile in tree.partial_tiles():
            self._compare_upper(place, tile)
        self._check_head(tree)
        self.verdict.flaws = list(map(self.naming.reconsidered, self.verdict.flaws))
        for flaw in completeness.flaws(self.head):
            self.verdict.add(flaw)
        self._count(time.monotonic() - began)
        return VerifiedLog(self.verdict, self.newest)

    def _verify_block(self, tree: Recount, start: int, end: int) -> None:
        statements = list(self._statements(start, end))
        for tile in self._tiles(start, end):
            tree.add(tile)
            while statements and statements[0].size <= tree.size:
                self._compare_root(statements.pop(0), tree)

    def _tiles(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the tiles of these leaves, after a comparison with the rows' hashes."""
        stored = StoredTiles()
        places = [(0, index) for index in range(start // WIDTH, -(-end // WIDTH))]
        stored.load([*places, *{(1, index // WIDTH) for _, index in places}])
        kept_from = min(end, max(start, self.head.minimum_index))
        hashes = recomputed(kept_from, end)
        for _, index in places:
            first, last = index * WIDTH, min(end, (index + 1) * WIDTH)
            tile = stored.fetch(0, index)[: (last - first) * HASH].ljust((last - first) * HASH, b"\0")
            dropped = max(0, min(last, kept_from) - first)
            present = [tile[n * HASH : (n + 1) * HASH] for n in range(dropped)]
            present += hashes[first + dropped - kept_from : last - kept_from]
            yield tile if b"".join(present) == tile else self._examine(stored, index, tile, present)

    def _examine(self, stored: StoredTiles, index: int, tile: bytes, present: Sequence[bytes]) -> bytes:
        """Name what is wrong in a tile or its leaves; return the tile as it seems to have been sealed."""
        hashes = b"".join(present)
        if len(hashes) == len(tile) and self._was_sealed(stored, index, hashes):
            self.verdict.add(Flaw(Damage.TILE, f"tile 0/{index} is not as sealed; its entries are"))
            return hashes
        sealed = {index * WIDTH + n: tile[n * HASH : (n + 1) * HASH] for n in range(len(present))}
        bad = [place for n, place in enumerate(sealed) if sealed[place] != present[n]]
        named = bad[: max(0, MOST_KEPT - self.verdict.flaw_count)]
        if named:
            found = {place: present[place - index * WIDTH] for place in named}
            self.verdict.add(*self.naming.flaws({place: sealed[place] for place in named}, found))
        self.verdict.flaw_count += len(bad) - len(named)
        return tile

    def _was_sealed(self, stored: StoredTiles, index: int, tile: bytes) -> bool:
        """Whether the tile above, or the head, has the root that these hashes lead to."""
        if len(tile) == FULL:
            above, place = divmod(index, WIDTH)
            return stored.fetch(1, above)[place * HASH : (place + 1) * HASH] == perfect_root(tile)
        stored.put({(0, index): tile})
        return _root(stored, self.head.size) == self.head.root

    def _statements(self, start: int, end: int) -> Iterator[Claim]:
        """Yield, by size, what checkpoints and claims state of the trees of `start` + 1 to `end` leaves."""
        said = [claim for claim in self.claims if start < claim.size <= end]
        for row in SignedHead.objects.filter(size__gt=start, size__lte=end).order_by("size"):
            said += self._signed(row)
        yield from sorted(said, key=lambda claim: claim.size)

    def _signed(self, row: SignedHead) -> Iterator[Claim]:
        """Yield what a stored checkpoint states, if a trusted key signed it."""
        self.checkpoints += 1
        try:
            note = Note.parse(row.note)
            checkpoint = self.trust.checkpoint(note)
            is_witnessed = self.trust.is_witnessed(note)
        except TlogError as error:
            self.verdict.add(Flaw(Damage.CHECKPOINT, f"checkpoint of size {row.size}: {error}"))
            return
        if (checkpoint.size, checkpoint.root) != (row.size, bytes(row.root)):
            detail = f"checkpoint of size {row.size}: its columns are not what its note states"
            self.verdict.add(Flaw(Damage.CHECKPOINT, detail))
        self.newest, self.signed = row, row.size
        self.witnessed = row.size if is_witnessed else self.witnessed
        yield Claim(checkpoint.size, checkpoint.root, "checkpoint")

    def _compare_root(self, claim: Claim, tree: Recount) -> None:
        if tree.root(claim.size) == claim.root:
            self._last_contained = claim.size
            return
        self._lost += 1
        if self._lost == 1:
            detail = (
                f"{claim.source} of size {claim.size}: the tree has another root there;"
                f" it was the same up to size {self._last_contained}"
            )
            self.verdict.add(Flaw(Damage.CHECKPOINT, detail))

    def _check_rolled_back(self) -> None:
        for claim in self.claims:
            if claim.size == 0 and claim.root != EMPTY_ROOT:
                self.verdict.add(Flaw(Damage.CHECKPOINT, f"{claim.source}: not the root of an empty tree"))
            if claim.size > self.head.size:
                detail = f"{claim.source} states {claim.size} leaves, the tree has {self.head.size}"
                self.verdict.add(Flaw(Damage.ROLLED_BACK, detail))
        largest = SignedHead.objects.order_by("-size").first()
        smallest = SignedHead.objects.order_by("size").first()
        if smallest is not None and smallest.size <= 0:
            self.verdict.add(Flaw(Damage.CHECKPOINT, f"there is a checkpoint of {smallest.size} leaves"))
        if largest is not None and largest.size > self.head.size:
            detail = f"there is a checkpoint of {largest.size} leaves, the tree has {self.head.size}"
            self.verdict.add(Flaw(Damage.ROLLED_BACK, detail))

    def _compare_upper(self, place: Coordinates, tile: bytes) -> None:
        if StoredTiles().fetch(*place) != tile:
            level, index = place
            self.verdict.add(Flaw(Damage.TILE, f"tile {level}/{index} does not follow from those below it"))

    def _check_head(self, tree: Recount) -> None:
        root = tree.root(tree.size) if tree.size else EMPTY_ROOT
        if root != self.head.root:
            self.verdict.add(Flaw(Damage.HEAD, f"the head is not the root of its {self.head.size} leaves"))

    def _count(self, seconds: float) -> None:
        size, dropped = self.head.size, self.head.minimum_index
        self.verdict.counts = {
            "size": size,
            "root": self.head.root.hex(),
            "entries": max(0, size - dropped),
            "dropped": dropped,
            "erased_parts": completeness.erased(),
            "queued": completeness.queued(),
            "checkpoints": self.checkpoints,
            "signed_up_to": self.signed,
            "seconds": round(seconds, 1),
        }
        if self._lost > 1:
            self.verdict.counts["checkpoints_not_contained"] = self._lost
        if self.trust.policy is not None:
            self.verdict.counts["witnessed_up_to"] = self.witnessed
        if size and not self.signed:
            self.verdict.doubts.append("no checkpoint of the log is signed by a trusted key")
        if size and not self.witnessed:
            self.verdict.doubts.append("no checkpoint has the cosignatures that the policy demands")


def _root(stored: StoredTiles, size: int) -> bytes:
    try:
        return stored.root(size)
    except TlogError:
        return b""
