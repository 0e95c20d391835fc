"""What the chart's processes reach, and who reaches them."""

import yaml

from deploy.tests.charts import CHART
from deploy.tests.manifests import CHECKS, Manifest, of_kind, pods, selected, selects


def policies() -> dict[str, Manifest]:
    prefix = "agents-agentid-"
    return {name.removeprefix(prefix): one["spec"] for name, one in of_kind("NetworkPolicy").items()}


def test_network_is_denied_to_all_and_policies_select_pods_that_exist() -> None:
    deny = policies()["deny"]

    assert selected(deny["podSelector"]) == set(pods())
    assert set(deny["policyTypes"]) == {"Ingress", "Egress"}
    assert not {"ingress", "egress"} & set(deny)
    for name, policy in policies().items():
        assert selected(policy["podSelector"]), name


def test_processes_reach_what_they_need_and_nothing_else() -> None:
    to = {
        name.removeprefix("to-"): selected(one["podSelector"])
        for name, one in policies().items()
        if name.startswith("to-")
    }
    everyone = {"web", "worker", "urgent-worker", "webhook-sender", "signal-sender", "beat"}

    assert to == {
        "dns": everyone | {"migration"} | CHECKS,
        "database": everyone | {"migration"} | CHECKS,
        "valkey": everyone,
        "hsm": {"web", "worker", "urgent-worker", "signal-sender"},
        # The example adds the worker, for witnesses.
        "public": {"webhook-sender", "signal-sender", "worker"},
        "oidc": {"web"},
    }


def test_public_egress_leaves_out_what_is_private_and_stays_with_the_senders_by_default() -> None:
    (rule,) = policies()["to-public"]["egress"]
    blocks = {one["ipBlock"]["cidr"]: one["ipBlock"]["except"] for one in rule["to"]}
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())["network"]["public"]

    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= set(blocks["0.0.0.0/0"])
    assert {"fc00::/7", "fe80::/10"} <= set(blocks["::/0"])
    assert rule["ports"] == [{"protocol": "TCP", "port": 443}]
    assert defaults["processes"] == ["webhook-sender", "signal-sender"]


def test_only_web_and_metrics_are_reached() -> None:
    found = {
        name: (
            selected(one["podSelector"]),
            [port["port"] for rule in one["ingress"] for port in rule["ports"]],
        )
        for name, one in policies().items()
        if one["policyTypes"] == ["Ingress"]
    }

    assert found == {
        "from-ingress": ({"web"}, [8000]),
        "metrics-of-web": ({"web"}, [8000]),
        "metrics-of-parts": ({"worker", "urgent-worker", "webhook-sender", "signal-sender", "beat"}, [9100]),
    }
    assert all(rule["from"] for one in policies().values() for rule in one.get("ingress", []))


def test_services_and_monitors_lead_to_ports_that_exist() -> None:
    services = of_kind("Service")
    for service in services.values():
        for port in service["spec"]["ports"]:
            chosen = [
                pod["spec"]["containers"][0]
                for pod in pods().values()
                if service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
            ]
            assert chosen
            assert all(port["targetPort"] in {one["name"] for one in each["ports"]} for each in chosen)
    for monitor in of_kind("ServiceMonitor").values():
        (endpoint,) = monitor["spec"]["endpoints"]
        (service,) = (
            one
            for one in services.values()
            if selects(monitor["spec"]["selector"], one["metadata"]["labels"])
        )
        assert endpoint["port"] in {one["name"] for one in service["spec"]["ports"]}
        assert endpoint["authorization"]["credentials"] == {"name": "agentid", "key": "metrics-token"}
