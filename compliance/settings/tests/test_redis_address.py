import pytest

from compliance.settings import redis_address

SERVERS = (
    "redis://127.0.0.1:6379/0",
    "redis://:p%40ss@valkey.example.org",
    "rediss://user:secret@[2001:db8::1]:6380/1?ssl_ca_certs=/etc/ca.pem&ssl_cert_reqs=required",
)
OTHERS = (
    "unix:///run/valkey.sock",
    "unix://:secret@/run/valkey.sock?db=1",
    "redis+cluster://:secret@one:7000,two:7001",
    "rediss+cluster://one:7000",
)
NONE = (
    "",
    "\n",
    " ",
    "\ufeffredis://127.0.0.1:6379/0",
    " redis://127.0.0.1:6379/0",
    "redis://127.0.0.1:6379/0\n",
    "REDIS://127.0.0.1:6379/0",
    "valkey://127.0.0.1:6379/0",
    "sentinel://127.0.0.1:26379",
    "amqp://guest:guest@127.0.0.1",
    "127.0.0.1:6379",
    "hunter2",
    "redis://",
    "redis:///0",
    "redis://:hunter2@/0",
    "redis://127.0.0.1:none/0",
    "redis://127.0.0.1:99999/0",
    "redis://127.0.0.1/first",
    "redis://127.0.0.1/0?such=none",
    "redis://[::1/0",
    "unix://",
    "redis+cluster://",
    "redis+cluster://one:7000,two",
    "redis+cluster://one:7000,",
)


@pytest.mark.parametrize("url", SERVERS)
def test_server_is_for_commands_and_messages(url: str) -> None:
    assert redis_address.checked(url) == url
    assert redis_address.checked_broker(url) == url


@pytest.mark.parametrize("url", OTHERS)
def test_socket_and_cluster_are_for_commands_alone(url: str) -> None:
    assert redis_address.checked(url) == url
    assert not redis_address.is_for_broker(url)


def test_option_that_celery_refuses_is_for_commands_alone() -> None:
    url = "redis://127.0.0.1:6379/0?socket_keepalive=yes"

    assert redis_address.checked(url) == url
    assert not redis_address.is_for_broker(url)


@pytest.mark.parametrize("url", NONE)
def test_anything_else_is_refused_and_not_shown(url: str) -> None:
    for check in (redis_address.checked, redis_address.checked_broker):
        with pytest.raises(ValueError, match="is no address") as refused:
            check(url)
        assert "hunter2" not in str(refused.value)
        assert refused.value.__cause__ is None
