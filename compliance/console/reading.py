"""Bounds what the console's pages read: the time of each statement, and the pages of a tenant at once."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from typing import Any, Final

from django.conf import settings
from django.db import DataError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse
from psycopg.errors import QueryCanceled

from compliance.console.access import ConsoleRole, access_of
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import Invalid, Unavailable
from compliance.core.shares import AllTaken, SharedSlots

STATEMENT_SECONDS: Final = 3
WAIT_SECONDS: Final = 1
READ_ONLY: Final = ("index", "autocomplete", "search", "console_overview", "agents_agent_trail")
LISTS_AND_ROWS: Final = ("_changelist", "_change")


# The other threads are the API's.
slots = SharedSlots(max(1, settings.WEB_THREADS // 2), longest_queue=2)


class TooMany(Unavailable):
    message = "Other pages of your tenant are still being read. Try again in a moment."


class TooSlow(Unavailable):
    message = f"The page reads for more than {STATEMENT_SECONDS} s. Choose a shorter time or another filter."


def bounded(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return `view` with a limit on each statement of the pages that only read, made and rendered inside.

    Raises: Invalid for a value that the database cannot compare with, TooMany, TooSlow.
    """

    @wraps(view)
    def read(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        name = (request.resolver_match and request.resolver_match.url_name) or ""
        only_reads = name in READ_ONLY or name.endswith(LISTS_AND_ROWS)
        if request.method not in ("GET", "HEAD") or not only_reads:
            return view(request, *args, **kwargs)
        # A slot of the user's tenant, of several the first; operators share theirs.
        holder = min(access_of(request).roles, default=ConsoleRole.OPERATOR)
        try:
            slot = slots.take(holder, seconds=WAIT_SECONDS)
        except AllTaken:
            raise TooMany from None
        try:
            with slot, ExitStack() as stack:
                # People are in the live database.
                for environment in {Environment.LIVE, environments.current()}:
                    with environments.use(environment):
                        stack.enter_context(environments.patient(timeout_seconds=STATEMENT_SECONDS))
                with environments.auditing():
                    stack.enter_context(environments.patient(timeout_seconds=STATEMENT_SECONDS))
                response = view(request, *args, **kwargs)
                return response.render() if isinstance(response, SimpleTemplateResponse) else response
        except DataError as error:
            raise Invalid("The address has a value that is out of range.") from error
        except OperationalError as error:
            if isinstance(error.__cause__, QueryCanceled):
                raise TooSlow from error
            raise

    return read
