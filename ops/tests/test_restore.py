"""Drills: an installation is lost, and restored on an empty machine from its backups."""

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_django.plugin import DjangoDbBlocker

from compliance.localdev.console import StepFailed
from compliance.localdev.layout import Layout
from compliance.localdev.servers.servers import Servers
from ops.tests.restoring.backups import Backups
from ops.tests.restoring.barman import find_barman
from ops.tests.restoring.site import Site

# Its servers outlive the functions that start them.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.drill,
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

Findings = dict[tuple[str, str], dict[str, Any]]


@dataclass
class Lost:
    """What is left of an installation: backups, what others kept of it, and what it was.

    `at_moment` is its state at `moment`, `at_end` the last one; agents were certified before and after.
    """

    servers: Servers
    folder: Path
    backups: Backups
    moment: datetime
    at_moment: dict[str, Any]
    at_end: dict[str, Any]

    def site(self, name: str) -> Site:
        return Site(self.servers, self.folder / name)

    def kept(self) -> list[str]:
        """Return the arguments that give `restore_check` what others kept."""
        found = []
        for environment, state in self.at_end.items():
            checkpoint, crl = self.folder / f"{environment}.checkpoint", self.folder / f"{environment}.crl"
            checkpoint.write_text(state["checkpoint"])
            crl.write_bytes(b64decode(state["list"]))
            found += ["--list", str(crl), "--against", str(checkpoint)]
        return found


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[Lost]:
    folder, servers = tmp_path_factory.mktemp("restore"), Servers(Layout())
    site = Site(servers, folder / "lost")
    with django_db_blocker.unblock():
        try:
            find_barman(site)
        except StepFailed as failure:
            pytest.skip(failure.message)
        try:
            found = _lost(site, folder)
        finally:
            site.destroy()
        yield found


def _lost(site: Site, folder: Path) -> Lost:
    """Let an installation live, back it up, and lose all that it consists of."""
    site.make()
    backups = Backups.of(site, folder / "backups")
    tenant = site.demo["tenant_id"]
    try:
        site.child("live", tenant, "2")
        backups.barman.back_up()
        at_moment = site.child("live", tenant, "2")
        with site.admin() as connection:
            (row,) = connection.execute("SELECT clock_timestamp()").fetchall()
        at_end = site.child("live", tenant, "2")
        backups.barman.catch_up(site)
        backups.keep_files(site)
    finally:
        site.kill()
        backups.barman.stop()
    return Lost(site.servers, folder, backups, row[0], at_moment, at_end)


@pytest.fixture
def restored(lost: Lost, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A site of the test's own, which does not exist yet."""
    site = lost.site(request.node.name)
    try:
        yield site
    finally:
        site.destroy()


def wrong(findings: Findings) -> dict[str, str]:
    """What is wrong, by check."""
    return {check: each["detail"] for (_, check), each in findings.items() if not each["ok"]}


def lists_of(kept: list[str]) -> list[str]:
    """The arguments that give lists alone."""
    pairs = zip(kept[::2], kept[1::2], strict=True)
    return [each for pair in pairs if pair[0] == "--list" for each in pair]


def test_everything_is_restored_to_the_end(lost: Lost, restored: Site) -> None:
    lost.backups.restore(restored)
    restored.start()

    found = restored.check(*lost.kept())

    assert wrong(found) == {}
    state = restored.child("state")
    assert {name: state[name]["tree"] for name in state} == {
        name: lost.at_end[name]["tree"] for name in state
    }
    serials = lost.at_end["live"]["active"]
    assert restored.child("sign", *serials) == dict.fromkeys(serials, True)
    published = restored.child("publish")
    assert published["live"]["list_number"] > lost.at_end["live"]["list_number"]


def test_restore_to_an_earlier_moment_is_noticed_and_lists_continue(lost: Lost, restored: Site) -> None:
    kept = lost.kept()
    lost.backups.restore(restored, moment=lost.moment)
    restored.start()
    state = restored.child("state")
    assert state["live"]["tree"] == lost.at_moment["live"]["tree"]
    assert state["live"]["active"] == lost.at_moment["live"]["active"]
    known = {*state["live"]["active"], *state["live"]["revoked"]}

    found = wrong(restored.check(*kept))

    assert "rolled back" in found["log verifies"]
    assert "was published" in found["list numbers"]
    assert found.keys() == {"log verifies", "list numbers"}

    for environment in lost.at_end:
        of, crl = ("--environment", environment), str(lost.folder / f"{environment}.crl")
        restored.manage("audit_key_rotate", *of, "--origin", f"{environment}.example/2")
        restored.manage("crl_resume", *of, "--list", crl)

    resumed = restored.child("state")["live"]
    assert resumed["list_number"] > lost.at_end["live"]["list_number"]
    assert resumed["revoked"] == [each for each in lost.at_end["live"]["revoked"] if each in known]
    restored.child("seal")
    assert wrong(restored.check(*lists_of(kept))) == {}
    assert restored.child("sign", *resumed["active"]) == dict.fromkeys(resumed["active"], True)
