"""The chart's manifests, rendered with the example's values and variants of them."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from deploy.tests.charts import CHART, EXAMPLE, run

CHECKS = {"audit-verify", "crl-check"}
"""The processes of CronJobs."""
VARIANTS: dict[str, tuple[str, ...]] = {
    "all": (),
    "least": (
        *("--set", "hsm.hosts=1,archive.claim=,ingress.enabled=false,metrics.serviceMonitor.enabled=false"),
        *("--set", "metrics.prometheusRule.enabled=false"),
        *("--set-json", "network.public.processes=[]", "--set-json", "network.more=[]"),
        *("--set-json", "network.hsm.to=[]", "--set-json", "network.metrics.from=[]"),
    ),
    "haproxy": ("--set", "ingress.routing=haproxy,hosts={a.example.org,b.example.org},image.tag=v2"),
}
Manifest = dict[str, Any]


@cache
def rendered(variant: str = "all") -> tuple[Manifest, ...]:
    """Return the variant's manifests."""
    done = run("template", "agents", str(CHART), "--values", str(EXAMPLE), *VARIANTS[variant])
    assert done.returncode == 0, done.stderr
    return tuple(found for found in yaml.load_all(done.stdout, yaml.CSafeLoader) if found)


def of_kind(*kinds: str, variant: str = "all") -> dict[str, Manifest]:
    """Map names to manifests of these kinds."""
    return {one["metadata"]["name"]: one for one in rendered(variant) if one["kind"] in kinds}


def pods(variant: str = "all") -> dict[str, Manifest]:
    """Map each process to its pod's template."""
    found = of_kind("Deployment", "Job", variant=variant).values()
    checks = of_kind("CronJob", variant=variant).values()
    templates = [one["spec"]["template"] for one in found]
    templates += [one["spec"]["jobTemplate"]["spec"]["template"] for one in checks]
    return {one["metadata"]["labels"]["app.kubernetes.io/component"]: one for one in templates}


def containers(variant: str = "all") -> Iterator[tuple[str, Manifest, Manifest]]:
    """Yield process, container and the pod's spec of every container."""
    for process, pod in pods(variant).items():
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            yield process, container, pod["spec"]


def selects(selector: Manifest, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector selects something with these labels."""
    wanted = selector.get("matchLabels", {})
    listed = selector.get("matchExpressions", [])
    assert all(one["operator"] == "In" for one in listed)
    return wanted.items() <= labels.items() and all(labels.get(one["key"]) in one["values"] for one in listed)


def selected(selector: Manifest) -> set[str]:
    """Return the processes whose pods a label selector selects."""
    return {name for name, pod in pods().items() if selects(selector, pod["metadata"]["labels"])}
