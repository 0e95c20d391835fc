"""Verify a log from its rows up to its checkpoints, in one snapshot; memory does not grow with the log."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from auditlog.errors import TreeDamaged
from auditlog.models import SignedHead, TreeHead
from auditlog.sealing import keys
from auditlog.sealing.tree import StoredTiles, head
from auditlog.tlog import tiles
from auditlog.tlog.lines import TlogError
from auditlog.tlog.merkle import EMPTY_ROOT, tree_root
from auditlog.tlog.notes import Note, VerifierKey
from auditlog.tlog.policy import Policy, Trust
from auditlog.tlog.tiles import FULL, HASH, WIDTH, Coordinates, extended, partial_tiles, perfect_root
from auditlog.verifying import completeness, findings, last_verified
from auditlog.verifying.findings import MOST_KEPT, Damage, Flaw, LogOutcome, Verdict
from compliance.core import environments
from compliance.stores import sql

BLOCK: Final = 64 * WIDTH
STATEMENT_SECONDS: Final = 3600
# A look-up for each entry in the order of leaves; other plans would read the whole table for each block.
_PLANS: Final = "; ".join(f"SET LOCAL enable_{plan} = {{0}}" for plan in ("hashjoin", "mergejoin", "sort"))

Tell = Callable[[int, int, float], None]
"""Takes progress: leaves done, leaves of the tree, seconds since the start."""


@dataclass(frozen=True)
class Claim:
    """Someone's statement that the first `size` leaves have this root.

    `is_kept`: it was kept outside of the database, whose writer cannot have changed it with the log.
    """

    size: int
    root: bytes
    source: str
    is_kept: bool = False


@dataclass(frozen=True)
class Demands:
    """A caller's demands: keys (else the log's own), witnesses, and old checkpoints by name."""

    keys: Sequence[VerifierKey] = ()
    policy: Policy | None = None
    against: Sequence[tuple[str, Note]] = ()


def verify_log(*, demands: Demands, tell: Tell, now: datetime) -> Verdict:
    """Verify the current environment's log; remember its newest checkpoint, or what is wrong.

    It must contain the checkpoint that was verified last and those of the demands. Raises: Invalid if
    AUDIT_VERIFIED_FILE is damaged, LogKeysMissing.
    """
    trust = Trust.of(demands.keys or keys.verifier_keys(now=now), demands.policy)
    flaws, stated = [], []
    for name, note in demands.against:
        try:
            stated.append((name, trust.checkpoint(note)))
        except TlogError as error:
            flaws.append(Flaw(Damage.CHECKPOINT, f"{name}: {error}"))
    if (before := last_verified.read()) is not None:
        stated.append(("the checkpoint verified last", before.checkpoint))
    claims = [Claim(checkpoint.size, checkpoint.root, name, is_kept=True) for name, checkpoint in stated]
    verdict, newest = Verdict(environments.current().value), None
    try:
        with environments.snapshot(timeout_seconds=STATEMENT_SECONDS):
            run = _Run(head(), trust, sorted(claims, key=lambda claim: claim.size), verdict)
            run.verify(tell)
            newest = run.newest
    except TreeDamaged as error:
        flaws.append(Flaw(Damage.HEAD, error.message))
    verdict.add(*flaws)
    if verdict.outcome is LogOutcome.TAMPERED:
        last_verified.keep(None, failure=str(verdict.flaws[0]), now=now)
    elif verdict.outcome is LogOutcome.VERIFIED:
        last_verified.keep(newest.note if newest else None, now=now)
    return verdict


class RecountedTree:
    """The tree computed from its leaves; keeps the partial tiles, and those that the last leaves changed."""

    def __init__(self) -> None:
        self.size = 0
        self.edge: dict[Coordinates, bytes] = {}
        self._tiles: dict[Coordinates, bytes] = {}

    def add(self, leaves: Iterable[bytes], count: int) -> dict[Coordinates, bytes]:
        changed = extended(self.size, self.edge, leaves)
        self._tiles = self.edge | changed
        self.size += count
        self.edge = {place: self._tiles[place] for place in partial_tiles(self.size)}
        return changed

    def root(self, size: int) -> bytes:
        return tree_root(size, partial(tiles.subtree, lambda level, index: self._tiles[level, index]))


@dataclass
class _Run:
    head: TreeHead
    trust: Trust
    claims: Collection[Claim]
    verdict: Verdict
    newest: SignedHead | None = None
    signed: int = 0
    witnessed: int = 0
    checkpoints: int = 0
    _last_contained: int = 0
    _lost: int = 0

    def verify(self, tell: Tell) -> None:
        began, tree = time.monotonic(), RecountedTree()
        leaf_tiles, queued, erased = sql.query(completeness.COUNTS)[0]
        self._check_rolled_back()
        sql.execute(_PLANS.format("off"))
        size = min(self.head.size, WIDTH * leaf_tiles)
        for start in range(0, size, BLOCK):
            end = min(size, start + BLOCK)
            self._compare_upper(tree.add(self._leaves(start, end), end - start), is_full=True)
            stated = [claim for claim in self.claims if start < claim.size <= end]
            for row in SignedHead.objects.filter(size__gt=start, size__lte=end).order_by("size"):
                stated += self._signed(row)
            for claim in sorted(stated, key=lambda claim: claim.size):
                self._compare_root(claim, tree)
            tell(end, size, time.monotonic() - began)
        sql.execute(_PLANS.format("on"))
        self._compare_upper(tree.edge, is_full=False)
        if (tree.root(size) if size > 0 else EMPTY_ROOT) != self.head.root:
            self._add(Damage.HEAD, f"the head is not the root of its {self.head.size} leaves")
        self.verdict.add(*completeness.flaws(self.head))
        self._count(queued, erased, time.monotonic() - began)

    def _add(self, damage: Damage, detail: str) -> None:
        self.verdict.add(Flaw(damage, detail))

    def _leaves(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the hashes of these leaves as they seem to have been sealed; compares them with the rows."""
        stored, places = StoredTiles(), range(start // WIDTH, -(-end // WIDTH))
        stored.load([*((0, index) for index in places), *{(1, index // WIDTH) for index in places}])
        rows = findings.recomputed(start, end)
        for index in places:
            leaves = range(index * WIDTH, min(end, (index + 1) * WIDTH))
            tile = stored.fetch(0, index)
            sealed = [tile[n * HASH : (n + 1) * HASH].ljust(HASH, b"\0") for n in range(len(leaves))]
            present = [
                rows.get(leaf, b"") if leaf >= self.head.minimum_index else kept
                for leaf, kept in zip(leaves, sealed, strict=True)
            ]
            if sealed == present:
                yield from sealed
            elif all(present) and self._was_sealed(stored, index, b"".join(present)):
                self._add(Damage.TILE, f"tile 0/{index} is not as sealed; its entries are")
                yield from present
            else:
                bad = [leaf for n, leaf in enumerate(leaves) if present[n] != sealed[n]]
                named = bad[: max(0, MOST_KEPT - self.verdict.flaw_count)]
                self.verdict.add(*findings.flaws({leaf: rows.get(leaf, b"") for leaf in named}))
                self.verdict.flaw_count += len(bad) - len(named)
                yield from sealed

    def _was_sealed(self, stored: StoredTiles, index: int, tile: bytes) -> bool:
        """Return whether the tile above, or the head, has the root that these hashes lead to."""
        if len(tile) == FULL:
            above, place = divmod(index, WIDTH)
            return stored.fetch(1, above)[place * HASH : (place + 1) * HASH] == perfect_root(tile)
        stored.put({(0, index): tile})
        return stored.root_or_nothing(self.head.size) == self.head.root

    def _signed(self, row: SignedHead) -> Iterator[Claim]:
        self.checkpoints += 1
        try:
            note = Note.parse(row.note)
            checkpoint = self.trust.checkpoint(note)
            is_witnessed = self.trust.is_witnessed(note)
        except TlogError as error:
            self._add(Damage.CHECKPOINT, f"checkpoint of size {row.size}: {error}")
            return
        self.newest, self.signed = row, row.size
        self.witnessed = row.size if is_witnessed else self.witnessed
        if (checkpoint.size, checkpoint.root) == (row.size, bytes(row.root)):
            yield Claim(checkpoint.size, checkpoint.root, "checkpoint")
        else:
            detail = f"checkpoint of size {row.size}: its columns are not what its note states"
            self._add(Damage.CHECKPOINT, detail)

    def _compare_root(self, claim: Claim, tree: RecountedTree) -> None:
        if tree.root(claim.size) == claim.root:
            if claim.is_kept:
                self._last_contained = claim.size
            return
        self._lost += 1
        if self._lost == 1:
            bound = (
                f"the first {self._last_contained} leaves are those of a checkpoint kept outside"
                if self._last_contained
                else "from which entry on, only a checkpoint kept outside can tell (--against)"
            )
            detail = f"{claim.source} of size {claim.size}: the tree has another root there; {bound}"
            self._add(Damage.CHECKPOINT, detail)

    def _check_rolled_back(self) -> None:
        for claim in self.claims:
            if claim.size == 0 and claim.root != EMPTY_ROOT:
                self._add(Damage.CHECKPOINT, f"{claim.source}: not the root of an empty tree")
            if claim.size > self.head.size:
                detail = f"{claim.source} states {claim.size} leaves, the tree has {self.head.size}"
                self._add(Damage.ROLLED_BACK, detail)
        sizes = list(SignedHead.objects.order_by("size").values_list("size", flat=True)[:1])
        sizes += SignedHead.objects.order_by("-size").values_list("size", flat=True)[:1]
        if sizes and sizes[0] <= 0:
            self._add(Damage.CHECKPOINT, f"there is a checkpoint of {sizes[0]} leaves")
        if sizes and sizes[1] > self.head.size:
            detail = f"there is a checkpoint of {sizes[1]} leaves, the tree has {self.head.size}"
            self._add(Damage.ROLLED_BACK, detail)

    def _compare_upper(self, found: dict[Coordinates, bytes], *, is_full: bool) -> None:
        """Compare the full tiles, or the others, above those of leaves with the stored ones."""
        for (level, index), tile in found.items():
            if level and (len(tile) == FULL) == is_full and StoredTiles().fetch(level, index) != tile:
                self._add(Damage.TILE, f"tile {level}/{index} does not follow from those below it")

    def _count(self, queued: int, erased: int, seconds: float) -> None:
        size, dropped = self.head.size, self.head.minimum_index
        self.verdict.counts = {
            "size": size,
            "root": self.head.root.hex(),
            "entries": max(0, size - dropped),
            "dropped": dropped,
            "erased_parts": erased,
            "queued": queued,
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
