"""The command."""

import io
import json
import os
import stat
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from agentid import Client, Unreachable
from agentid.command.main import code_of, main
from tests.between import Canned, between
from tests.conftest import Reported

SOURCES = Path(__file__).parents[2] / "src"
SETTINGS = ("AGENTID_API_KEY", "AGENTID_WEBHOOK_SECRET", "XDG_CONFIG_HOME")


class Shell:
    """Runs the command with a home of its own, in this process."""

    def __init__(self, home: Path, base_url: str) -> None:
        self.home = home
        self.base_url = base_url

    def environment(self, **more: str) -> dict[str, str]:
        return {"HOME": str(self.home), "AGENTID_BASE_URL": self.base_url, **more}

    def run(self, *arguments: str, sent: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        """Run it; the exit code is that of the process it would be."""
        command = ["--json", *arguments]
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name in SETTINGS:
                patch.delenv(name, raising=False)
            for name, value in self.environment(**more).items():
                patch.setenv(name, value)
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(sent.encode())))
            try:
                code = main(command)
            except SystemExit as ended:  # of argparse
                code = ended.code if isinstance(ended.code, int) else -1
        return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())

    def start(self, *arguments: str, sent: str) -> "subprocess.CompletedProcess[str]":
        """Run it as a process."""
        return subprocess.run(
            [sys.executable, "-m", "agentid", "--json", *arguments],
            input=sent,
            env=self.environment(PATH=os.environ["PATH"], PYTHONPATH=str(SOURCES)),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def read(self, *arguments: str, **more: Any) -> Any:
        done = self.run(*arguments, **more)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def test_key_is_checked_kept_and_never_shown(shell: Shell, reported: Reported) -> None:
    done = shell.start("login", sent=f"{reported.api_key}\n")
    kept = shell.home / ".config" / "agentid" / "account.json"

    assert done.returncode == 0
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    (who,) = shell.read("whoami")
    assert (who["base_url"], who["environment"], who["api_key"]) == (shell.base_url, "live", "service_live_…")
    assert reported.api_key not in done.stdout + done.stderr + json.dumps(who)


def test_environment_of_the_key_is_shown(shell: Shell, sandbox_key: str) -> None:
    (who,) = shell.read("whoami", AGENTID_API_KEY=sandbox_key)

    assert (who["environment"], who["api_key"]) == ("test", "service_test_…")


def test_what_is_of_the_other_environment_is_hinted_at(
    shell: Shell, sandbox_key: str, tmp_path: Path
) -> None:
    with Client(shell.base_url, sandbox_key) as client:
        agent = client.agents.register(name="a", model_hash="x")
        (file := tmp_path / "agent.pem").write_text(client.agents.certify(agent.id).certificate_pem)
        chain = [{"sub": "alice@example.com", "type": "human"}]
        token = client.delegation.issue(agent.id, chain=chain, audience="me").token

    for asked, reason in (
        (("certificate", str(file), "--no-revocation"), "untrusted_issuer"),
        (("token", token, "--audience", "me"), "unknown_key"),
    ):
        refused = shell.run("verify", *asked)
        assert json.loads(refused.stdout)["reason"] == reason
        assert "--environment test" in refused.stderr
        assert shell.run("verify", *asked, "--environment", "test").returncode == 0


def test_wrong_key_is_not_kept(shell: Shell) -> None:
    done = shell.start("login", sent="service_live_wrong\n")

    assert done.returncode == 4
    assert not (shell.home / ".config").exists()
    assert shell.run("whoami").returncode == 2
    assert shell.run("login", sent="\n").returncode == 2


def test_kept_key_goes_to_its_own_service_only(shell: Shell, reported: Reported) -> None:
    shell.run("login", sent=f"{reported.api_key}\n")

    assert shell.run("whoami", AGENTID_BASE_URL="http://127.0.0.1:9").returncode == 2


def test_certificate_is_verified_with_the_services_lists(
    shell: Shell, client: Client, tmp_path: Path
) -> None:
    agent = client.agents.register(name="a", model_hash="x", metadata={"permitted_actions": ["read"]})
    file = tmp_path / "agent.pem"
    file.write_text(client.agents.certify(agent.id).certificate_pem)

    (found,) = shell.read("verify", "certificate", str(file), "--no-revocation")

    assert (found["agent_id"], found["permitted_actions"]) == (agent.id, ["read"])
    refused = shell.run("verify", "certificate", str(file), "--root", str(file), "--chain", str(file))
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["valid"] is False


def test_token_and_message_are_verified(
    shell: Shell, client: Client, reported: Reported, tmp_path: Path
) -> None:
    agent_id = str(reported.agent.id)
    chain = [{"sub": "alice@example.com", "type": "human"}]
    token = client.delegation.issue(agent_id, chain=chain, audience="me").token
    certificate = next(client.certificates.list(agent_id=agent_id))
    signature = client.messages.sign(agent_id, payload={"a": 1}).signature
    pem, payload = tmp_path / "agent.pem", tmp_path / "payload.json"
    pem.write_text(certificate.certificate_pem)
    payload.write_text('{"a": 1.0}')
    message = ["verify", "message", str(payload), "--certificate", str(pem), "--no-revocation"]

    (found,) = shell.read("verify", "token", "--audience", "me", sent=token)
    (signed,) = shell.read(*message, "--signature", signature)

    assert (found["principal"], found["agent_id"]) == ("alice@example.com", agent_id)
    assert signed["agent_id"] == agent_id
    other = shell.run("verify", "token", token, "--audience", "you")
    assert (other.returncode, json.loads(other.stdout)["reason"]) == (1, "wrong_audience")
    payload.write_text('{"a": 2}')
    assert shell.run(*message, "--signature", signature).returncode == 1


def test_events_are_followed(shell: Shell, client: Client, reported: Reported) -> None:
    agent_id = str(reported.agent.id)
    made = [client.events.record(agent_id=agent_id, action_type="api_call").id for _ in range(3)]

    found = shell.read("events", "tail", "--count", "2", "--lines", "2", AGENTID_API_KEY=reported.api_key)

    assert [each["id"] for each in found] == made[1:]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("verify", "certificate", "/nowhere.pem"), 3),
        (("verify", "proof", "/nowhere", "--log-key", "x"), 3),
        (("verify", "webhook", "/dev/null"), 2),
        (("verify", "certificate", "/dev/null", "--root", "/dev/null", "--chain", "/dev/null"), 1),
        (("verify",), 2),
        (("events", "tail"), 4),
        (("events", "tail", "--lines", "-1"), 2),
        (("events", "tail", "--count", "-1"), 2),
        (("events", "tail", "--interval", "nan"), 2),
        (("--base-url", "https://[bad", "whoami"), 2),
    ],
)
def test_exit_codes_say_what_happened(shell: Shell, arguments: tuple[str, ...], code: int) -> None:
    assert shell.run(*arguments).returncode == code


def test_service_that_is_away_has_a_code(shell: Shell) -> None:
    with between(shell.base_url, Canned(503, headers={"Retry-After": "0"})) as busy:
        assert shell.run("--base-url", busy.address, "whoami", AGENTID_API_KEY="k").returncode == 5

    assert code_of(Unreachable("reset")) == 5
    assert shell.run("whoami", AGENTID_BASE_URL="http://service.example").returncode == 2
    assert shell.run("login", AGENTID_BASE_URL="").returncode == 2
