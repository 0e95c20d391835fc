"""A replay of the command line: shows how far it is, keeps its checkpoint in a file, and can be resumed."""

from collections.abc import Callable
from pathlib import Path

from compliance.core.errors import Invalid
from events.risk.evaluation import replay
from events.risk.evaluation.replay import STEP_EVENTS, Order, Replay


def begun(order: Order, file: Path | None, *, resume: bool, any_end: bool) -> Replay:
    """Return a replay at its start, or with `resume` where the checkpoint in `file` left it.

    With `any_end` it then keeps the end that it was begun with. Raises Invalid if the file is another
    order's, and OSError. Without such a file it starts anew.
    """
    if not resume:
        return Replay(order)
    if file is None:
        raise Invalid("--resume needs --checkpoint FILE")
    if not file.exists():
        return Replay(order)
    return replay.resumed(file.read_bytes(), order, any_end=any_end)


def finish(under_way: Replay, file: Path | None, *, tell: Callable[[Replay], None]) -> None:
    """Run the replay to its end; after each step call `tell` and store the checkpoint."""
    while not under_way.run(most=STEP_EVENTS):
        tell(under_way)
        if file is not None:
            _store(file, under_way.packed())
    tell(under_way)
    if file is not None:
        file.unlink(missing_ok=True)


def _store(file: Path, content: bytes) -> None:
    """Replace the file whole, so that an interrupted write leaves the one before."""
    new = file.with_name(f"{file.name}.new")
    new.touch(mode=0o600)
    new.write_bytes(content)
    new.replace(file)
