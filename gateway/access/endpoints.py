"""The endpoints of `/access/v1`, as both entrances serve them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from compliance.api.endpoint import Deferred, Endpoint, EndpointRequest
from compliance.api.gate import Scope
from compliance.core.errors import Forbidden, ServiceError
from compliance.observing import correlation
from gateway.access import questions, settling
from gateway.access.questions import AccessQuestion, Evaluation, EvaluationsSemantic
from gateway.access.settling import AccessAnswer
from gateway.access.weighing import weigh_all


class Evaluate(Endpoint[AccessQuestion, AccessAnswer]):
    """`POST /access/v1/evaluation`: questions that arrive together share their statements.

    One that opens or uses an approval leaves the group for a transaction of its own.
    """

    method, path, allow = "POST", "/access/v1/evaluation", "POST"
    scope, bucket = Scope.DECISIONS_EVALUATE, "gateway"
    headers: ClassVar[Mapping[str, str]] = {"cache-control": "no-store"}
    largest_group, worth_a_group, longest_gathering = 50, 8, 0.002

    def read(self, request: EndpointRequest) -> AccessQuestion:
        return self._question(request, [questions.read_one(request.body)])

    def work(
        self, questions: Sequence[AccessQuestion]
    ) -> Sequence[AccessAnswer | Exception | Deferred[AccessAnswer]]:
        asked = list(zip(questions, weigh_all(questions), strict=True))
        late = [Deferred(partial(settling.settle, *one)) if settling.asks(one[1]) else None for one in asked]
        plain = [one for one, deferred in zip(asked, late, strict=True) if deferred is None]
        answers = iter(settling.settle_together(plain))
        return [deferred or next(answers) for deferred in late]

    def show(self, outcome: AccessAnswer) -> Mapping[str, Any]:
        return settling.shown(outcome)

    def _question(
        self,
        request: EndpointRequest,
        asked: Sequence[Evaluation | ServiceError],
        semantic: EvaluationsSemantic = EvaluationsSemantic.EXECUTE_ALL,
        is_single: bool = True,
    ) -> AccessQuestion:
        if request.tenant_id is None or request.key_id is None:
            raise Forbidden()
        return AccessQuestion(
            tenant_id=request.tenant_id,
            key_id=request.key_id,
            now=request.received_at,
            evaluations=asked,
            semantic=semantic,
            is_single=is_single,
            ids=correlation.current(),
        )


class EvaluateAll(Evaluate):
    """`POST /access/v1/evaluations`: up to a hundred evaluations in one request."""

    path = "/access/v1/evaluations"
    largest_group = 10

    def read(self, request: EndpointRequest) -> AccessQuestion:
        return self._question(request, *questions.read_all(request.body))

    def requests_in(self, question: AccessQuestion) -> int:
        return len(question.evaluations)


EVALUATE, EVALUATE_ALL = Evaluate(), EvaluateAll()
