"""The endpoint of `GET /v1/verify/{serial}`, as both entrances serve it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from certificates.errors import CertificateNotFound, MomentNotPast
from certificates.pki.serials import environment_of, parse_serial
from certificates.public import verification
from certificates.public.verification import Verification, query_of, validity_at
from certificates.serializers import shown_verification
from compliance.api.endpoint import PUBLIC_HEADERS, EndpointRequest, LoopEndpoint
from compliance.api.pagination import read_moment
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.stores.asking import Asker


class VerifyRequest(NamedTuple):
    """A serial number someone asks about, at what time, and perhaps what it was worth `at` a past one."""

    serial: int
    now: datetime
    at: datetime | None


class VerifyCertificate(LoopEndpoint[VerifyRequest, Verification]):
    """`GET /v1/verify/{serial}`: serials that are asked about together are found by one statement."""

    method, path, allow = "GET", "/v1/verify/", "GET, HEAD"
    bucket = "verify"
    reserved = frozenset({"message"})
    headers = {"cache-control": "no-store", **PUBLIC_HEADERS}

    def read(self, request: EndpointRequest) -> VerifyRequest:
        at = read_moment(request.query, "at")
        if at is not None and at > request.received_at:
            raise MomentNotPast()
        serial = parse_serial(request.parameter)
        if serial is None:
            raise CertificateNotFound()
        return VerifyRequest(serial, request.received_at, at)

    def environment_of(self, question: VerifyRequest) -> Environment:
        return environment_of(question.serial)

    async def answer(
        self, questions: Sequence[VerifyRequest], asker: Asker
    ) -> Sequence[Verification | ServiceError]:
        environment, now = environment_of(questions[0].serial), questions[-1].now
        (rows,), _ = await asker.ask([query_of({asked.serial for asked in questions})])
        found = verification.verifications(rows, environment=environment, now=now)
        outcomes: list[Verification | ServiceError] = []
        for asked in questions:
            known = found.get(asked.serial)
            if known is not None and asked.at is not None:
                known = replace(known, at=validity_at(known.certificate, asked.at))
            outcomes.append(known or CertificateNotFound())
        return outcomes

    def show(self, outcome: Verification) -> Mapping[str, Any]:
        return {"data": shown_verification(outcome)}


VERIFY_CERTIFICATE = VerifyCertificate()
