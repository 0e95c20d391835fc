"""A cluster: commands go to the node of their keys, and on after a node's death."""

import asyncio
import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest
from pytest_django.fixtures import Settings
from redis.exceptions import RedisError

from compliance.api import rate_limits
from compliance.api.rate_limits import SCRIPT, Caller
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.localdev.servers.redis_cluster import SLOTS, RedisCluster
from compliance.stores import announcements, redis, redis_cluster
from compliance.tests.looped import opened
from compliance.tests.redis_servers import redis_at
from compliance.tests.waiting import eventually

LONG = 60.0
ECHO = redis.Script("return ARGV[1]")
CALLER = Caller("key", "somebody")


def test_address_has_nodes_and_options_of_all() -> None:
    found = redis_cluster.parse("rediss+cluster://user:p%40ss@one:7000,two:7001,[::1]:7002?ssl_ca_certs=/a")

    assert found.url == "rediss://user:p%40ss@one:7000?ssl_ca_certs=/a"
    assert found.others == [("two", 7001), ("::1", 7002)]
    assert redis_cluster.is_cluster("redis+cluster://one:1")
    assert not redis_cluster.is_cluster("redis://one:1/0")


@pytest.mark.parametrize("node", ["two", "two:port", ":1"])
def test_address_without_a_port_is_refused(node: str) -> None:
    with pytest.raises(ValueError, match="port"):
        redis_cluster.parse(f"redis+cluster://one:7000,{node}")


@pytest.mark.parametrize("identity", ["10.0.0.1", "2001:db8::1", "a{b}c", "}{", "ü"])
def test_keys_of_a_limit_are_in_one_slot(identity: str) -> None:
    _, log, total, *_ = rate_limits._call(Caller("key", identity), 1, 0)

    assert redis_cluster.slot_of(log) == redis_cluster.slot_of(total)


def test_limits_of_many_callers_are_spread() -> None:
    slots = {redis_cluster.slot_of(rate_limits._call(Caller("key", str(n)), 1, 0)[1]) for n in range(100)}

    assert len(slots) > 90


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    made = RedisCluster(tmp_path_factory.mktemp("cluster") / "nodes", "of-the-test", replicas=1)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def cluster(started: RedisCluster, settings: Settings) -> Iterator[RedisCluster]:
    """A whole cluster behind REDIS_URL."""
    started.start()
    with redis_at(started.url(), settings):
        rate_limits.forget()
        yield started


drill = [
    pytest.mark.drill,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def marked(test: object) -> object:
    for mark in drill:
        test = mark(test)
    return test


def works() -> bool:
    """Whether keys of all slots are written and read."""
    names = [f"some:{number}" for number in range(60)]
    try:
        redis.checked(redis.together([("SET", name, name) for name in names]))
        return redis.values_of(names) == [name.encode() for name in names]
    except RedisError:
        return False


def _nodes_shown() -> int:
    redis.look_again()
    return len(redis.described())


@marked
def test_commands_of_all_slots_run_together_and_in_order(cluster: RedisCluster) -> None:
    names = [f"{{{uuid4()}}}:{number}" for number in range(90)]
    redis.checked(redis.together([("SET", name, str(at)) for at, name in enumerate(names[::2])]))

    found = redis.values_of(names)
    echoes = ECHO.run(*((1, name, name) for name in names))
    nodes = {number for number in range(3) if cluster.nodes[number].ask("DBSIZE") != "0"}

    assert found == [str(at // 2).encode() if at % 2 == 0 else None for at in range(len(names))]
    assert echoes == [name.encode() for name in names]
    assert nodes == {0, 1, 2}
    assert redis.values_of([]) == []
    # A replica is shown once its first data have come.
    assert eventually(lambda: _nodes_shown() == 6, seconds=LONG)


@marked
def test_script_that_one_node_forgot_is_sent_to_it(cluster: RedisCluster) -> None:
    names = [f"some:{number}" for number in range(30)]
    ECHO.run(*((1, name, "a") for name in names))
    cluster.nodes[1].ask("SCRIPT", "FLUSH")

    assert ECHO.run(*((1, name, name) for name in names)) == [name.encode() for name in names]


@marked
def test_command_of_several_slots_is_a_defect_that_shows(cluster: RedisCluster) -> None:
    with pytest.raises(Exception, match=r"(?i)slot"):
        redis.client().mget("one", "two", "three")


@marked
def test_limits_count_in_the_loop_and_outside(cluster: RedisCluster) -> None:
    callers = [Caller("key", str(uuid4())) for _ in range(20)]

    async def scene() -> list[int]:
        async with opened(SCRIPT) as script:
            await rate_limits.hit_each(script, callers)
            return [found.remaining for found in await rate_limits.hit_each(script, callers)]

    inside = asyncio.run(scene())
    outside = [rate_limits.hit(*caller).remaining for caller in callers]

    assert {one - other for one, other in zip(inside, outside, strict=True)} == {1}


@marked
def test_clients_go_on_after_a_primary_died(cluster: RedisCluster) -> None:
    heard: list[str] = []
    stopping = threading.Event()
    channel = ("tests", "due")
    listener = threading.Thread(
        target=announcements.listen,
        args=([channel], Environment.LIVE, lambda: heard.append("woken"), stopping),
    )
    listener.start()
    # The node that holds the channel's slot has the subscription.
    with environments.use(Environment.LIVE):
        dead = cluster.primary_of(redis_cluster.slot_of(redis.key(*channel)))
    assert dead is not None
    assert works()
    assert eventually(lambda: bool(heard), seconds=LONG)

    async def scene() -> None:
        async with opened(ECHO) as script:
            calls = [(1, f"some:{number}", "x") for number in range(30)]
            assert await script.run(*calls) == [b"x"] * 30
            await asyncio.to_thread(cluster.kill, dead)
            assert await asyncio.to_thread(eventually, works, seconds=LONG)
            deadline = asyncio.get_running_loop().time() + LONG
            while True:
                try:
                    assert await script.run(*calls) == [b"x"] * 30
                    return
                except RedisError:
                    assert asyncio.get_running_loop().time() < deadline
                    await asyncio.sleep(0.1)

    def is_heard() -> bool:
        before = len(heard)
        with environments.use(Environment.LIVE):
            announcements.announce(channel)
        return eventually(lambda: len(heard) > before, seconds=0.5)

    try:
        asyncio.run(scene())
        assert eventually(is_heard, seconds=LONG)
        assert cluster.primary_of(0) is not None
        assert cluster.primary_of(SLOTS - 1) is not None
    finally:
        stopping.set()
        listener.join(LONG)
