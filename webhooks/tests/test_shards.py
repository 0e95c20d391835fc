"""Which shards of the queue a sender claims from next."""

from collections import Counter

from webhooks.sending.shards import COUNT, FEWEST, ShardTurns


def round_of(turns: ShardTurns, *, contended: bool = False) -> list[list[int]]:
    tried: list[list[int]] = []
    while sum(len(shards) for shards in tried) < COUNT:
        shards = turns.next()
        turns.note(tried=shards, held=shards[1:] if contended else shards, had_slow=True)
        tried.append(shards)
    return tried


def test_sender_that_is_alone_claims_from_all_at_once() -> None:
    turns = ShardTurns()

    (shards,) = round_of(turns)

    assert sorted(shards) == list(range(COUNT))
    assert turns.is_round_over


def test_contended_sender_takes_fewer_at_a_time_and_leaves_none_out() -> None:
    turns = ShardTurns()
    round_of(turns, contended=True)
    round_of(turns, contended=True)

    parts = round_of(turns, contended=True)

    assert {len(part) for part in parts} == {FEWEST}
    assert Counter(shard for part in parts for shard in part) == Counter(range(COUNT))
    assert not turns.is_round_over


def test_sender_takes_more_again_when_others_have_gone() -> None:
    turns = ShardTurns()
    for _ in range(3):
        round_of(turns, contended=True)
    round_of(turns)

    assert max(map(len, round_of(turns))) > FEWEST


def test_round_goes_on_while_slow_endpoints_were_left_out() -> None:
    turns = ShardTurns()
    shards = turns.next()

    turns.note(tried=shards, held=shards, had_slow=False)

    assert not turns.is_round_over
    assert sorted(turns.next()) == list(range(COUNT))
