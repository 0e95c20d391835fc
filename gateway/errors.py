"""Errors of routes, and of requests for a decision that their gateway is at fault for."""

from compliance.core.errors import Conflict, Invalid, NotFound


class RouteNotFound(NotFound):
    message = "Gateway route not found"


class RouteNameTaken(Conflict):
    message = "The tenant has a gateway route of this name"


class TooManyRoutes(Conflict):
    message = "The tenant has as many gateway routes as it can have"


class InconsistentRoute(Invalid):
    message = "The settings of the route contradict each other"


class ActionMissing(Invalid):
    """The gateway named no action, or none that a scope could hold."""


class RequestNotForwarded(Invalid):
    """The gateway did not say which request a proof belongs to."""


class AskPolicyNotFound(NotFound):
    message = "Approval policy not found"


class TooManyAskPolicies(Conflict):
    message = "The tenant has as many approval policies as it can have"
