"""Holds and their release, as openssl and Java see them."""

from pathlib import Path

from certificates.tests import outside
from certificates.tests.factories import make_held_certificate, reinstate_agent
from certificates.tests.test_holds import publish_now
from certificates.tests.test_ocsp import issuer_of, leaf_of
from compliance.tests.client import ApiClient
from tenancy.models import Tenant


def test_openssl_follows_a_hold_and_its_release(api: ApiClient, tenant: Tenant, tmp_path: Path) -> None:
    certificate = make_held_certificate(tenant)
    authority, base = certificate.authority, f"/v1/crl/{certificate.authority.serial_number}"
    (tmp_path / "ca").write_text(api.get("/v1/ca", Accept="text/plain").content.decode())
    (tmp_path / "leaf").write_text(certificate.certificate_pem)
    judge: list[str | Path] = ["verify", "-crl_check", "-CAfile", tmp_path / "ca"]

    publish_now(authority)
    full = _saved(api, base, tmp_path / "full")
    assert "Certificate Hold" in outside.openssl("crl", "-in", full, "-text", "-noout")
    assert "revoked" in outside.openssl_refusal(*judge, "-CRLfile", full, tmp_path / "leaf")

    reinstate_agent(certificate.agent)
    publish_now(authority)
    delta = _saved(api, f"{base}/delta", tmp_path / "delta")
    assert "Remove From CRL" in outside.openssl("crl", "-in", delta, "-text", "-noout")
    assert outside.pkilint_crl(api.get(f"{base}/delta").content) == []
    with_delta: list[str | Path] = ["-CRLfile", full, "-CRLfile", delta, "-extended_crl", "-use_deltas"]
    assert outside.openssl(*judge, *with_delta, tmp_path / "leaf")
    newest = _saved(api, base, tmp_path / "newest")
    assert outside.openssl(*judge, "-CRLfile", newest, tmp_path / "leaf")


def _saved(api: ApiClient, path: str, file: Path) -> Path:
    file.write_text(api.get(path, Accept="text/plain").content.decode())
    return file


def test_java_follows_a_hold_and_its_release(api: ApiClient, tenant: Tenant, tmp_path: Path) -> None:
    certificate = make_held_certificate(tenant)
    authority = certificate.authority
    assert authority.parent is not None
    issuing = outside.write_pem(tmp_path / "issuing", issuer_of(certificate))
    leaf = outside.write_pem(tmp_path / "leaf", leaf_of(certificate))
    root = tmp_path / "root"
    root.write_text(api.get(f"/v1/ca/{authority.parent.serial_number}", Accept="text/plain").content.decode())
    base, shard = f"/v1/crl/{authority.serial_number}", certificate.crl_shard

    verdicts = []
    for _ in range(2):
        publish_now(authority)
        crls = [
            _saved(api, f"{base}/{shard}", tmp_path / "shard.crl"),
            _saved(api, f"{base}/delta", tmp_path / "delta.crl"),
            _saved(api, f"/v1/crl/{authority.parent.serial_number}", tmp_path / "root.crl"),
        ]
        verdicts.append(outside.java_pkix(root, [leaf, issuing], crls))
        if len(verdicts) == 1:
            reinstate_agent(certificate.agent)

    assert verdicts == ["invalid: REVOKED", "valid"]
