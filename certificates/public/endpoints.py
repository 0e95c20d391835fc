"""The endpoint of `GET /v1/verify/{serial}`, as both entrances serve it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from certificates import services
from certificates.errors import CertificateNotFound, MomentNotPast
from certificates.pki.serials import environment_of, parse_serial
from certificates.public.verification import Verification, first_query, second_query, validity_at
from certificates.serializers import shown_verification
from compliance.api.endpoint import EndpointRequest, ReadEndpoint
from compliance.api.pagination import read_moment
from compliance.api.rest.throttling import VerifyThrottle
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.stores.async_postgres import Query, Rows


class VerifyRequest(NamedTuple):
    """A serial number someone asks about, at what time, and perhaps what it was worth `at` a past one."""

    serial: int
    now: datetime
    at: datetime | None


class VerifyCertificate(ReadEndpoint[VerifyRequest, Verification]):
    """`GET /v1/verify/{serial}`: serials that are asked about together are found by one statement."""

    method, path, allow = "GET", "/v1/verify/", "GET, HEAD"
    bucket = VerifyThrottle.bucket
    reserved = frozenset({"message"})
    headers = {"cache-control": "no-store"}
    # `?at=` needs more than the certificate's row.
    takes_query = False

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

    def query(self, questions: Sequence[VerifyRequest]) -> Query:
        return first_query(*_asked(questions))

    def second_query(self, questions: Sequence[VerifyRequest], rows: Rows) -> Query | None:
        serials, environment = _asked(questions)
        return second_query(serials, rows, environment)

    def outcomes(
        self, questions: Sequence[VerifyRequest], rows: Sequence[Sequence[Any]]
    ) -> Sequence[Verification | ServiceError]:
        environment, now = environment_of(questions[0].serial), questions[-1].now
        found = services.verifications(rows, environment=environment, now=now)
        return [
            _at(found[asked.serial], asked.at) if asked.serial in found else CertificateNotFound()
            for asked in questions
        ]

    def show(self, outcome: Verification) -> Mapping[str, Any]:
        return {"data": shown_verification(outcome)}


def _asked(questions: Sequence[VerifyRequest]) -> tuple[set[int], Environment]:
    """The serial numbers of questions of one environment."""
    return {asked.serial for asked in questions}, environment_of(questions[0].serial)


def _at(found: Verification, at: datetime | None) -> Verification:
    return found if at is None else replace(found, at=validity_at(found.certificate, at))


VERIFY_CERTIFICATE = VerifyCertificate()
