"""The cluster's database: the death of its primary loses nothing that was acknowledged."""

from pathlib import Path

from django.conf import settings

from deploy.tests.programs import output_of, program
from ops.tests.cluster.configurations import CAPS, NodeAddress, WebAddress, haproxy, patroni

NODE = NodeAddress("node-1", "10.0.0.1", 5432, 8008, 2379, 2380)


def test_balancer_has_the_rules_that_are_shipped(tmp_path: Path) -> None:
    shipped = (Path(settings.BASE_DIR) / "deploy/haproxy/haproxy.cfg").read_text()
    path = tmp_path / "haproxy.cfg"

    text = haproxy(
        [NODE], [WebAddress("web-1", 8000)], host="127.0.0.1", postgres=5000, web=80, shipped=shipped
    )

    path.write_text(text)
    said = output_of(program("haproxy"), "-c", "-f", str(path))
    _, _, tls = shipped.partition("frontend tls\n")
    rules = [
        line for line in tls.splitlines() if line.strip().startswith(("acl ", "http-", "balance ", "hash-"))
    ]
    assert rules
    assert [rule for rule in rules if rule not in text] == [
        rule for rule in rules if "X-Forwarded-Proto https" in rule or rule.strip().startswith(CAPS)
    ]
    assert "tune.bufsize 65536" in text
    assert "server node-1 10.0.0.1:5432 check port 8008" in text
    assert text.count("    server web-1 127.0.0.1:8000 check\n") == 1
    assert "WARNING" not in said


def test_commits_wait_for_a_standby() -> None:
    passwords = dict.fromkeys(("superuser", "replication", "rewind"), "secret")

    text = patroni(NODE, [NODE], data=Path("/data"), programs=Path("/bin"), passwords=passwords)

    assert '"synchronous_mode": true' in text
    assert '"fsync": "on"' in text
