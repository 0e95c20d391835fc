"""The endpoints of `/access/v1`, as both entrances serve them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from compliance.api.endpoint import Deferred, Endpoint, EndpointRequest
from compliance.api.gate import Scope
from compliance.core.errors import Forbidden, ServiceError
from gateway.access import questions, settling
from gateway.access.questions import AccessQuestion
from gateway.access.settling import AccessAnswer
from gateway.access.weighing import Weighed, weigh_all


class Evaluate(Endpoint[AccessQuestion, AccessAnswer]):
    """`POST /access/v1/evaluation`: questions that arrive together share their statements.

    What writes (an approval, an entry in the audit log) leaves the group for a transaction of its own.
    """

    method, path, allow = "POST", "/access/v1/evaluation", "POST"
    scope, bucket = Scope.DECISIONS_EVALUATE, "gateway"
    headers: ClassVar[Mapping[str, str]] = {"cache-control": "no-store"}
    largest_group, worth_a_group, longest_gathering = 50, 8, 0.002

    def read(self, request: EndpointRequest) -> AccessQuestion:
        if request.tenant_id is None or request.key_id is None:
            raise Forbidden()
        asked = [questions.read_one(request.body)]
        return AccessQuestion(request.tenant_id, request.key_id, request.received_at, asked)

    def work(
        self, questions: Sequence[AccessQuestion]
    ) -> Sequence[AccessAnswer | Exception | Deferred[AccessAnswer]]:
        weighed = weigh_all(questions)
        return [_settled(question, found) for question, found in zip(questions, weighed, strict=True)]

    def show(self, outcome: AccessAnswer) -> Mapping[str, Any]:
        return settling.shown(outcome)


class EvaluateAll(Evaluate):
    """`POST /access/v1/evaluations`: up to a hundred evaluations in one request."""

    path = "/access/v1/evaluations"
    largest_group = 10

    def read(self, request: EndpointRequest) -> AccessQuestion:
        if request.tenant_id is None or request.key_id is None:
            raise Forbidden()
        asked, semantic, is_single = questions.read_all(request.body)
        return AccessQuestion(
            request.tenant_id, request.key_id, request.received_at, asked, semantic, is_single
        )


def _settled(
    question: AccessQuestion, weighed: Sequence[Weighed]
) -> AccessAnswer | Exception | Deferred[AccessAnswer]:
    settle = partial(settling.settle, question, weighed)
    if settling.writes(weighed):
        return Deferred(settle)
    try:
        return settle()
    except ServiceError as error:
        return error


EVALUATE, EVALUATE_ALL = Evaluate(), EvaluateAll()
