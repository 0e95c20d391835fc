"""The place of each issued token in the lists of statuses: a number from one sequence, split by list."""

from typing import Final

from django.conf import settings

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql
from delegation.jose.tokens import StatusListEntry, TokenStatus

LIST_SIZE: Final = 2**16
PATH: Final = "/v1/status-lists/"


def next_index() -> int:
    """The next number of the current environment; one that is not used leaves a gap."""
    return next_indexes(1)[0]


def next_indexes(count: int) -> list[int]:
    """The next so many numbers of the current environment."""
    rows = sql.prepared("SELECT delegation_next_status_index() FROM generate_series(1, %s)", [count])
    return [int(number) for (number,) in rows]


def status_at(index: int) -> TokenStatus:
    """The `status` claim of the token with this number."""
    number, place = divmod(index, LIST_SIZE)
    return TokenStatus(StatusListEntry(place, uri_of(environments.current(), number)))


def index_of(status: TokenStatus) -> int:
    """The number behind a `status` claim of this service's."""
    number = status.status_list.uri.rpartition("-")[2]
    return int(number) * LIST_SIZE + status.status_list.idx


def uri_of(environment: Environment, number: int) -> str:
    return f"{settings.BASE_URL}{PATH}{environment.value}-{number}"
