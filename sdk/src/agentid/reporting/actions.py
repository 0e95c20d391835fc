"""What a function or a block did, told as one event when it ends."""

import inspect
import time
from asyncio import CancelledError
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from agentid.reporting.encoding import ActionType

P = ParamSpec("P")
R = TypeVar("R")
Report = Callable[[ActionType, dict[str, Any]], bool]


class Action:
    """Reports `outcome` and `duration_ms`; arguments only if asked for, results and messages never.

    `name` is reported as `tool`, which the service compares with what the certificate permits; a decorated
    function without one is reported as `callable`. As a context manager it yields a dict; what the block puts
    there is reported too.
    """

    def __init__(self, report: Report, action_type: ActionType, *, name: str | None, arguments: bool) -> None:
        self._report, self._action_type, self._name, self._arguments = report, action_type, name, arguments
        self._details: dict[str, Any] = {}
        self._began = 0.0

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function or a coroutine function."""
        signature = inspect.signature(function) if self._arguments else None

        def begun(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Action:
            action = Action(self._report, self._action_type, name=self._name, arguments=False)
            if self._name is None:
                action._details["callable"] = function.__qualname__
            if signature is not None:
                with suppress(TypeError):  # the call itself will say so
                    action._details["arguments"] = dict(signature.bind(*args, **kwargs).arguments)
            return action

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with begun(args, kwargs):
                    return await function(*args, **kwargs)

            return cast("Callable[P, R]", awaited)

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            with begun(args, kwargs):
                return function(*args, **kwargs)

        return called

    def __enter__(self) -> dict[str, Any]:
        self._began = time.monotonic()
        return self._details

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        outcome = "succeeded" if kind is None else "failed"
        if kind is not None and issubclass(kind, CancelledError):
            outcome = "cancelled"
        told: dict[str, Any] = {"tool": self._name} if self._name else {}
        told |= {"outcome": outcome, "duration_ms": round((time.monotonic() - self._began) * 1000, 3)}
        told |= {"error": kind.__name__} if kind is not None else {}
        self._report(self._action_type, {**self._details, **told})
