"""The private Valkey Cluster: formed, started again, and healed after a primary's death."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compliance.localdev.servers import processes
from compliance.localdev.servers.redis_cluster import SLOTS, CommandRefused, RedisCluster

LONG = 60.0

pytestmark = [
    pytest.mark.slow,
    # The nodes outlive the object that started them.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RedisCluster]:
    made = RedisCluster(tmp_path / "cluster", "of-the-test", replicas=getattr(request, "param", 0))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_cluster_serves_all_slots_and_survives_a_restart(cluster: RedisCluster) -> None:
    assert cluster.is_whole()
    assert [cluster.primary_of(slot) for slot in (0, SLOTS // 2, SLOTS - 1)] == [0, 1, 2]
    assert not cluster.start()

    cluster.stop()
    cluster.start()

    assert cluster.is_whole()
    with pytest.raises(CommandRefused, match="CROSSSLOT"):
        cluster.nodes[0].ask("MGET", "one", "two")


@pytest.mark.drill
@pytest.mark.parametrize("cluster", [1], indirect=True)
def test_replica_takes_over_from_a_primary_that_died(cluster: RedisCluster) -> None:
    cluster.kill(0)

    assert processes.wait_until(lambda: cluster.primary_of(0) == 3, seconds=LONG)
    cluster.start()
    assert cluster.is_whole()
