"""Read from the tree what outsiders verify (checkpoints, tiles, leaves, proofs), and how far the log is."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse

from auditlog import errors
from auditlog.exporting.formats import FORMATS
from auditlog.models import AuditEntry, SignedHead, WitnessState
from auditlog.sealing.stored_rows import SealedEntry, sealed_between, sealed_entry_of
from auditlog.sealing.tree import Backlog, StoredTiles, backlog, head, latest_checkpoint, published_checkpoint
from auditlog.submitting import gathering
from auditlog.tlog.lines import TlogError, write_hashes
from auditlog.tlog.merkle import consistency_path, leaf_hash
from auditlog.tlog.policy import TrustedWitness
from auditlog.tlog.tiles import HASH, WIDTH, parse_path, width_at
from compliance.core.encodings import b64_encode
from compliance.core.errors import InvalidState

HIGHEST_LEVEL = 63
PROOF_HEADER = "c2sp.org/tlog-proof@v1"
MET, MISSING, NO_POLICY = QUORUMS = ("met", "missing", "none")


@dataclass(frozen=True)
class Consistency:
    """The proof (RFC 6962 §2.1.2) that the tree of `new` leaves begins with that of `old` leaves."""

    old: int
    new: int
    path: list[bytes]


def checkpoint(*, now: datetime) -> SignedHead:
    """Return the published checkpoint. Raises: NothingSealed, PublicationStopped."""
    gathering.check_uncontradicted()
    if found := published_checkpoint(now=now):
        return found
    raise errors.NothingSealed()


def quorum_of(checkpoint: SignedHead | None) -> str:
    """Return whether the note has enough cosignatures: `met`, `missing`, or `none` without a policy."""
    try:
        rules = gathering.policy()
    except errors.WitnessPolicyInvalid:
        return MISSING
    if rules is None:
        return NO_POLICY
    return MET if checkpoint is not None and gathering.is_witnessed(checkpoint, rules) else MISSING


def tile(level: str, path: str) -> bytes:
    """Return a tile's hashes (C2SP tlog-tiles). Raises: TileNotFound, TreeDamaged."""
    number = int(level) if level.isascii() and level.isdigit() and len(level) <= 2 else HIGHEST_LEVEL + 1
    if number > HIGHEST_LEVEL or str(number) != level:
        raise errors.TileNotFound()
    index, width = _covered(number, path)
    found = StoredTiles().fetch(number, index)[: width * HASH]
    if len(found) != width * HASH:
        raise errors.TreeDamaged()
    return found


def bundle(path: str) -> bytes:
    """Return a bundle of leaves, each behind its length in two octets.

    A leaf holds commitments only, so that every tenant may read every leaf. Raises: TileNotFound,
    ContentsDropped if retention has dropped the contents of one, TreeDamaged if they do not fit the tile.
    """
    index, width = _covered(0, path)
    start = index * WIDTH
    if start < head().minimum_index:
        raise errors.ContentsDropped()
    try:
        leaves = [entry.leaf() for entry in sealed_between(start, start + width)]
    except (ValueError, TypeError) as error:
        raise errors.TreeDamaged(f"An entry of bundle {path} is not as sealed: {error}") from error
    if b"".join(map(leaf_hash, leaves)) != StoredTiles().fetch(0, index)[: width * HASH]:
        # Unless retention has come in between, the tables were tampered with: that must not be cached.
        raise errors.ContentsDropped() if start < head().minimum_index else errors.TreeDamaged()
    return b"".join(len(leaf).to_bytes(2, "big") + leaf for leaf in leaves)


def proof(*, tenant_id: UUID, entry_id: str, now: datetime) -> str:
    """Return the entry's tlog-proof file. Raises: EntryNotFound, NotSealedYet, PublicationStopped."""
    gathering.check_uncontradicted()
    entry = AuditEntry.objects.for_tenant(tenant_id).find(entry_id)
    sealed = sealed_entry_of(entry.id)
    under = published_checkpoint(now=now, covering=sealed.index) if sealed else None
    if sealed is None or under is None:
        raise errors.NotSealedYet(retry_after=1)
    return prove(sealed, under)


def prove(sealed: SealedEntry, under: SignedHead) -> str:
    extra = json.dumps(sealed.disclosure(), ensure_ascii=False, separators=(",", ":"))
    path = StoredTiles().inclusion_path(sealed.index, under.size)
    head = f"{PROOF_HEADER}\nextra {b64_encode(extra.encode())}\nindex {sealed.index}\n"
    return f"{head}{write_hashes(path)}\n{under.note}"


def consistency(*, old: int, new: int | None) -> Consistency:
    """Prove that the tree of `new` leaves, by default the newest checkpoint's, begins with that of `old`.

    Raises: NothingSealed, TreeDamaged, and InvalidState for sizes out of order or beyond that checkpoint.
    """
    found = latest_checkpoint()
    if found is None:
        raise errors.NothingSealed()
    newest = found.size
    new = newest if new is None else new
    if not 0 <= old <= new <= newest:
        raise InvalidState(f"from and to must satisfy 0 <= from <= to <= {newest}")
    try:
        return Consistency(old, new, consistency_path(old, new, StoredTiles().subtree))
    except TlogError as error:
        raise errors.TreeDamaged() from error


def _covered(level: int, path: str) -> tuple[int, int]:
    """Return index and width of a tile that the newest checkpoint covers; raises `TileNotFound`."""
    try:
        index, width = parse_path(path)
    except TlogError as error:
        raise errors.TileNotFound() from error
    newest = latest_checkpoint()
    if newest is None or width_at(newest.size, level, index) < width:
        raise errors.TileNotFound()
    return index, width


TEXT = "text/plain; charset=utf-8"
PRIVATE = "private, no-cache"


def proof_file(found: str, entry_id: object) -> HttpResponse:
    name = f'attachment; filename="{entry_id}.tlog-proof"'
    headers = {"Cache-Control": PRIVATE, "Content-Disposition": name}
    return HttpResponse(found, content_type=TEXT, headers=headers)


def export_file(export: Iterable[bytes], name: str) -> StreamingHttpResponse:
    disposition = f'attachment; filename="audit-log.{name}"'
    headers = {"Cache-Control": "private, no-store", "Content-Disposition": disposition}
    return StreamingHttpResponse(export, content_type=FORMATS[name].media_type, headers=headers)


@dataclass(frozen=True)
class WitnessReport:
    """A witness of the policy; its names there and in cosignatures, its last cosignature and problem."""

    name: str
    key_name: str
    url: str | None
    size: int
    cosigned_at: datetime | None
    problem: str

    @property
    def contradicts(self) -> bool:
        return gathering.contradicts(self.problem)


@dataclass(frozen=True)
class LogState:
    """Sizes in entries, 0 before the first. `minimum_index`: the first entry whose contents are kept.

    `quorum` as in `proofs.quorum_of`; `missing_since`: when the oldest checkpoint without it was signed.
    `policy_problem`: why the witness policy cannot be read.
    """

    tree_size: int
    signed_size: int
    published_size: int
    minimum_index: int
    backlog: Backlog
    published: SignedHead | None
    quorum: str
    missing_since: datetime | None
    witnesses: tuple[WitnessReport, ...]
    policy_problem: str

    @property
    def is_contradicted(self) -> bool:
        return any(witness.contradicts for witness in self.witnesses)


def log_state(*, now: datetime) -> LogState:
    # The newest checkpoint first: a tree read after it is as large at least.
    newest = latest_checkpoint()
    published, tree = published_checkpoint(now=now, newest=newest), head()
    quorum = quorum_of(published)
    missing_since: datetime | None = None
    if quorum == MISSING:
        signed = SignedHead.objects.order_by("size")
        witnessed = signed.filter(has_quorum=True).last()
        waiting = signed.filter(size__gt=witnessed.size if witnessed else 0)
        missing_since = waiting.values_list("signed_at", flat=True).first()
    trusted: list[TrustedWitness] = []
    policy_problem = ""
    try:
        rules = gathering.policy()
        trusted = rules.witnesses if rules else []
    except errors.WitnessPolicyInvalid as error:
        policy_problem = error.message
    states = {state.name: state for state in WitnessState.objects.all()} if trusted else {}
    return LogState(
        tree_size=tree.size,
        signed_size=newest.size if newest else 0,
        published_size=published.size if published else 0,
        minimum_index=tree.minimum_index,
        backlog=backlog(),
        published=published,
        quorum=quorum,
        missing_since=missing_since,
        witnesses=tuple(
            WitnessReport(each.name, each.key.name, each.url, known.size, known.cosigned_at, known.problem)
            for each in trusted
            for known in [states.get(each.name) or WitnessState(name=each.name)]
        ),
        policy_problem=policy_problem,
    )
