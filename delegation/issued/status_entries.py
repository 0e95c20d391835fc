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
    return int(sql.prepared("SELECT delegation_next_status_index()", None)[0][0])


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
