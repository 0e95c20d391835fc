"""Redis Cluster and Valkey Cluster: the address, and commands sorted by the node of their keys.

redis-py's own pipeline asks a node for the keys of each script's call; ours takes them from where they stand.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from redis.asyncio.cluster import ClusterNode as AsyncClusterNode
from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    ClusterDownError,
    CrossSlotTransactionError,
    MovedError,
    RedisClusterException,
    SlotNotCoveredError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import TimeoutError as Hung
from redis.retry import Retry

SCHEMES: Final = {"redis+cluster": "redis", "rediss+cluster": "rediss"}
"""Schemes of a cluster's address, each with that of a node's."""
SCRIPTS: Final = frozenset({"EVAL", "EVALSHA"})
GONE: Final = (Unreachable, Hung, ClusterDownError, SlotNotCoveredError)
"""Errors after which the cluster may have other primaries."""
MOVED: Final = (MovedError, AskError, TryAgainError)
RETRIES: Final = 2

Command = tuple[Any, ...]


def is_cluster(url: str) -> bool:
    """Whether an address is that of a cluster: `redis+cluster://[user]:password@host:port,host:port`."""
    return urlsplit(url).scheme in SCHEMES


class Address(NamedTuple):
    """The address of one node, with the credentials and options of all, and the hosts and ports of others."""

    url: str
    others: list[tuple[str, int]]


def parse(url: str) -> Address:
    """Read a cluster's address. Raises: ValueError."""
    parts = urlsplit(url)
    credentials, at, nodes = parts.netloc.rpartition("@")
    first, *others = nodes.split(",")
    one = parts._replace(scheme=SCHEMES[parts.scheme], netloc=f"{credentials}{at}{first}", path="")
    return Address(urlunsplit(one), [_host_and_port(node) for node in others])


def slot_of(key: str) -> int:
    """The slot of a key."""
    return key_slot(key.encode())


def routing_key(command: Command) -> str:
    """The first key of a command, which stands in the slot of all its keys."""
    return str(command[3] if command[0] in SCRIPTS else command[1])


@contextmanager
def in_one_family() -> Iterator[None]:
    """Raise `ConnectionError` for redis-py's errors of a cluster that are no `RedisError`.

    A command of several slots, a defect of the caller, stays what it is.
    """
    try:
        yield
    except RedisClusterException as error:
        if isinstance(error, CrossSlotTransactionError) or "same key slot" in str(error):
            raise
        raise Unreachable(f"no node of the cluster serves this: {error}") from error


class Cluster(RedisCluster):
    """The client of a cluster, whose errors are all `RedisError`."""

    def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        with in_one_family():
            return super().execute_command(*args, **kwargs)  # type: ignore[no-untyped-call]

    def together(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands, each of keys in one slot, in one round trip to each node.

        Returns answers and errors in order. Commands to a node that is gone are sent once more, to its
        successor if it has one: they may then have run twice.
        """
        answers: list[Any] = [None] * len(commands)
        lost = self._sent(commands, range(len(commands)), answers)
        if lost:
            self.look_again()
            self._sent(commands, lost, answers)
        for index, answer in enumerate(answers):
            if isinstance(answer, MOVED):
                answers[index] = _answer_or_error(lambda: self.execute_command(*commands[index]))  # noqa: B023
        return answers

    def look_again(self) -> None:
        """Ask the nodes which of them serve which slots; a failure shows at the next command."""
        _answer_or_error(self.nodes_manager.initialize)

    def _sent(self, commands: Sequence[Command], indexes: Sequence[int], answers: list[Any]) -> list[int]:
        """Send some of the commands and enter their answers; return the indexes of those to send again."""
        by_node: dict[str, list[int]] = {}
        lost = []
        for index in indexes:
            node = _answer_or_error(lambda: self.get_node_from_key(routing_key(commands[index])))  # type: ignore[no-untyped-call]  # noqa: B023
            if isinstance(node, ClusterNode):
                by_node.setdefault(node.name, []).append(index)
            else:
                answers[index] = node or Unreachable("no node serves this slot")
                lost.append(index)
        for name, its in by_node.items():
            found = _answer_or_error(lambda: self._asked(name, [commands[index] for index in its]))  # noqa: B023
            for index, answer in zip(
                its, found if isinstance(found, list) else [found] * len(its), strict=True
            ):
                answers[index] = answer
                if isinstance(answer, GONE):
                    lost.append(index)
        return lost

    def _asked(self, name: str, commands: Sequence[Command]) -> list[Any]:
        node = self.get_node(node_name=name)  # type: ignore[no-untyped-call]
        with self.get_redis_connection(node).pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
            return pipeline.execute(raise_on_error=False)


def _answer_or_error(ask: Callable[[], Any]) -> Any:
    try:
        with in_one_family():
            return ask()
    except (*GONE, *MOVED) as error:
        return error


def make_client(url: str, options: dict[str, Any]) -> Cluster:
    """Connect to a cluster, of which other nodes may be away. Raises: RedisError if no node answers."""
    address = parse(url)
    with in_one_family():
        return Cluster(
            url=address.url,
            startup_nodes=[ClusterNode(*node) for node in address.others],  # type: ignore[no-untyped-call]
            retry=Retry(NoBackoff(), RETRIES),
            require_full_coverage=False,
            # Nodes keep their configured names where their own addresses can't be reached.
            dynamic_startup_nodes=False,
            **options,
        )


def make_async_client(url: str, options: dict[str, Any]) -> AsyncRedisCluster:
    """As `make_client()`, for an event loop; it connects at the first command."""
    address = parse(url)
    return AsyncRedisCluster.from_url(
        address.url,
        startup_nodes=[AsyncClusterNode(*node) for node in address.others],
        retry=AsyncRetry(NoBackoff(), RETRIES),
        require_full_coverage=False,
        dynamic_startup_nodes=False,
        **options,
    )


def _host_and_port(node: str) -> tuple[str, int]:
    parts = urlsplit(f"//{node}")
    if not parts.hostname or not parts.port:
        raise ValueError(f"no host and port: {node}")
    return parts.hostname, parts.port
