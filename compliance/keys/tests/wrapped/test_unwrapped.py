"""The cache of unwrapped keys: bounded, and no object is destroyed while somebody signs with it."""

from dataclasses import dataclass

from pkcs11.exceptions import ObjectHandleInvalid

from compliance.keys.base import KeyRef
from compliance.keys.pkcs11.unwrapped import UnwrappedKeys


@dataclass
class TokenObject:
    """What the cache needs of an object: that it can be destroyed, once."""

    handle: int
    destroyed: int = 0
    is_gone_already: bool = False

    def destroy(self) -> None:
        self.destroyed += 1
        if self.is_gone_already:
            raise ObjectHandleInvalid


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def key(number: int) -> KeyRef:
    return KeyRef(f"pkcs11:token=t;id=%{number:02X}", b"spki")


def test_least_recently_used_key_is_destroyed() -> None:
    cache, found = UnwrappedKeys(size=2), [TokenObject(number) for number in range(3)]
    cache.add(key(0), found[0])
    cache.add(key(1), found[1])
    with cache.lent(key(0)) as held:
        assert held is not None
        assert held.handle == 0

    cache.add(key(2), found[2])

    assert [one.destroyed for one in found] == [0, 1, 0]
    assert len(cache) == 2
    with cache.lent(key(1)) as gone:
        assert gone is None


def test_key_in_use_is_destroyed_after_its_last_user() -> None:
    cache, found = UnwrappedKeys(size=1), TokenObject(0)
    cache.add(key(0), found)

    with cache.lent(key(0)), cache.lent(key(0)):
        cache.add(key(1), TokenObject(1))
        assert found.destroyed == 0

    assert found.destroyed == 1


def test_second_object_of_one_key_replaces_the_first() -> None:
    cache, first, second = UnwrappedKeys(), TokenObject(0), TokenObject(1)

    cache.add(key(0), first)
    cache.add(key(0), second)

    assert (first.destroyed, second.destroyed, len(cache)) == (1, 0, 1)


def test_expired_key_is_not_lent_and_goes_with_the_next() -> None:
    clock = Clock()
    cache, found = UnwrappedKeys(lifetime=10, clock=clock), TokenObject(0)
    cache.add(key(0), found)

    clock.seconds = 10
    with cache.lent(key(0)) as held:
        assert held is None
    cache.add(key(1), TokenObject(1))

    assert (found.destroyed, len(cache)) == (1, 1)


def test_same_uri_with_another_public_key_is_another_key() -> None:
    cache = UnwrappedKeys()
    cache.add(key(0), TokenObject(0))

    with cache.lent(KeyRef(key(0).uri, b"another")) as held:
        assert held is None


def test_object_gone_with_its_session_is_forgotten() -> None:
    cache = UnwrappedKeys()
    cache.add(key(0), TokenObject(0, is_gone_already=True))

    cache.drop(key(0))
    cache.drop(key(0))

    assert len(cache) == 0
