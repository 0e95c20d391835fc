"""The chart, rendered by helm itself: valid for Kubernetes, and what an installation relies on."""

import re

import kubernetes_validate
import pytest
import yaml
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings
from django.urls import URLResolver, get_resolver

from compliance.settings.declaring import Section
from deploy.tests import promql
from deploy.tests.charts import CHART, EXAMPLE, run
from deploy.tests.manifests import CHECKS, VARIANTS, Manifest, containers, of_kind, pods, rendered, selects
from deploy.tests.programs import PARTS

# Kubernetes' own kinds have schemas; those of the Prometheus operator do not.
FOREIGN = {"ServiceMonitor", "PrometheusRule"}
OLDEST, NEWEST = "1.29.0", "1.37.0"


def test_lint_finds_nothing() -> None:
    done = run("lint", "--strict", str(CHART), "--values", str(EXAMPLE))

    assert done.returncode == 0, done.stdout
    assert "0 chart(s) failed" in done.stdout


@pytest.mark.parametrize(
    ("variant", "version"), [("all", OLDEST), ("all", NEWEST), ("least", NEWEST), ("haproxy", NEWEST)]
)
def test_manifests_are_valid(variant: str, version: str) -> None:
    usual = () if variant == "all" else rendered()
    for manifest in rendered(variant):
        if manifest["kind"] not in FOREIGN and manifest not in usual:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_every_process_is_there_with_the_command_of_the_others() -> None:
    """The compose file names the same processes; addresses, numbers of workers and hosts may differ."""
    ours = {f"{process}/{one['name']}": one["command"] for process, one, _ in containers()}

    def of_compose(name: str) -> list[str]:
        command: list[str] = [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in PARTS[name]["command"]]
        return command[2].removeprefix("exec ").split() if command[0] == "sh" else command

    processes = {*PARTS} - {"postgres", "valkey", "nginx", "key-host", "migrate"}
    assert {*pods()} == processes | {"migration"} | CHECKS
    assert ours["web/web"] == of_compose("web")
    for name in ("worker", "urgent-worker", "beat", "webhook-sender", "signal-sender"):
        assert ours[f"{name}/{name}"] == of_compose(name)
    # Compose waits for its PostgreSQL before.
    migrations = PARTS["migrate"]["command"][-1].splitlines()[-2:]
    assert ours["migration/migration"][-1].split(" && ")[1:] == migrations
    for name in ("web", "worker", "urgent-worker", "signal-sender"):
        assert ours[f"{name}/key-host-0"] == of_compose("key-host")
        assert ours[f"{name}/key-host-1"] == [*of_compose("key-host")[:-1], "1"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_containers_are_confined(variant: str) -> None:
    """As Kubernetes' Pod Security Standard "restricted" asks, and with a read-only root file system."""
    for _, container, pod in containers(variant):
        rights = container["securityContext"]
        assert (rights["runAsNonRoot"], rights["runAsUser"]) == (True, 10001)
        assert (rights["readOnlyRootFilesystem"], rights["allowPrivilegeEscalation"]) == (True, False)
        assert rights["capabilities"] == {"drop": ["ALL"]}
        assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & set(pod)
        kinds = {kind for volume in pod["volumes"] for kind in volume if kind != "name"}
        assert kinds <= {"emptyDir", "secret", "persistentVolumeClaim"}
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_mounts_have_volumes(variant: str) -> None:
    for _, container, pod in containers(variant):
        mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        assert set(mounted) <= {one["name"] for one in pod["volumes"]}
        assert len(set(mounted.values())) == len(mounted)


@pytest.mark.parametrize("variant", VARIANTS)
def test_settings_exist_and_secrets_are_files(variant: str) -> None:
    declared = {one.name: one for section in Section.every for one in section.variables}
    of_others = {"POD_IP", *yaml.safe_load(EXAMPLE.read_text())["hsm"]["environment"]}
    for _, container, pod in containers(variant):
        names = [one["name"] for one in container["env"]]
        assert len(set(names)) == len(names)
        files = files_of(container, pod)
        for one in container["env"]:
            if one["name"] in of_others:
                continue
            setting = declared.get(one["name"].removesuffix("_FILE")) or declared[one["name"]]
            assert set(one) == {"name", "value"}
            if setting.is_secret:
                assert one["name"] == f"{setting.name}_FILE"
                assert one["value"] in files


def files_of(container: Manifest, pod: Manifest) -> set[str]:
    """The paths of the secrets' files that a container sees."""
    paths = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    return {
        f"{paths[volume['name']]}/{item['path']}"
        for volume in pod["volumes"]
        if volume["name"] in paths
        for item in volume.get("secret", {}).get("items", [])
    }


def test_owners_credentials_and_pins_go_to_those_who_need_them() -> None:
    seen = {
        (process if container["name"] == process else "key-host", name.rsplit("/", 1)[0])
        for process, container, pod in containers()
        for name in files_of(container, pod)
    }

    assert {who for who, folder in seen if folder == "/run/secrets/owner"} == {"migration"}
    assert {who for who, folder in seen if folder == "/run/secrets/hsm"} == {"key-host"}


def test_migration_refuses_unsafe_settings_before_it_migrates() -> None:
    (command,) = (one["command"][-1] for process, one, _ in containers() if process == "migration")
    check, *_ = command.split(" && ")

    assert check == "python manage.py check --deploy --tag unsafe_settings"
    with override_settings(DEBUG=True), pytest.raises(SystemCheckError, match=r"wiring\.E010"):
        call_command(*check.split()[2:4], "--tag", check.split()[-1])


def test_web_takes_requests_by_its_health() -> None:
    (web,) = (one for _, one, _ in containers() if one["name"] == "web")
    paths = {name: web[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}

    assert paths == {"startup": "/health/ready", "readiness": "/health/live", "liveness": "/health/live"}
    # Probes ask for the pod by its address, which must be a known host.
    assert "$(POD_IP)" in next(one["value"] for one in web["env"] if one["name"] == "ALLOWED_HOSTS")


def test_every_process_is_probed_and_spread_and_has_a_budget() -> None:
    budgets = [one["spec"] for one in of_kind("PodDisruptionBudget").values()]
    for deployment in of_kind("Deployment").values():
        pod = deployment["spec"]["template"]
        assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        (main,) = pod["spec"]["containers"]
        assert {"startupProbe", "livenessProbe"} <= set(main)
        assert all("startupProbe" in one for one in pod["spec"].get("initContainers", []))
        spread = pod["spec"]["topologySpreadConstraints"]
        assert [one["topologyKey"].rpartition("/")[2] for one in spread] == ["hostname", "zone"]
        assert all(selects(one["labelSelector"], pod["metadata"]["labels"]) for one in spread)
        budget = [one for one in budgets if selects(one["selector"], pod["metadata"]["labels"])]
        assert [one["maxUnavailable"] for one in budget] == [1]


def test_checks_keep_what_they_verified_where_doctor_looks() -> None:
    found = {container["name"]: (container, pod) for _, container, pod in containers()}

    assert {name.removeprefix("agents-agentid-") for name in of_kind("CronJob", variant="least")} == CHECKS
    for name in ("audit-verify", "worker"):
        container, pod = found[name]
        kept = next(one["value"] for one in container["env"] if one["name"] == "AUDIT_VERIFIED_FILE")
        (mount,) = (one for one in container["volumeMounts"] if kept.startswith(one["mountPath"]))
        (volume,) = (one for one in pod["volumes"] if one["name"] == mount["name"])
        assert volume["persistentVolumeClaim"] == {"claimName": "agentid-archive"}


def test_names_fit_kubernetes_whatever_the_release_is_called() -> None:
    done = run("template", "r" * 53, str(CHART), "--values", str(EXAMPLE))
    found = [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]

    # A CronJob's Jobs get eleven characters more.
    most = {"CronJob": 52}
    assert {one["kind"] for one in found} >= {"CronJob", "Deployment"}
    assert all(len(one["metadata"]["name"]) <= most.get(one["kind"], 63) for one in found)


def test_checks_end_and_do_not_wait_for_a_volume_they_do_not_use() -> None:
    jobs = {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: one["spec"]["jobTemplate"]["spec"]
        for one in of_kind("CronJob").values()
    }

    assert all(job["activeDeadlineSeconds"] > 0 for job in jobs.values())
    volumes = {name: job["template"]["spec"]["volumes"] for name, job in jobs.items()}
    assert {
        name for name, all_of_it in volumes.items() if any(one["name"] == "archive" for one in all_of_it)
    } == {"audit-verify"}


def test_migration_goes_before_the_new_processes() -> None:
    (job,) = of_kind("Job").values()

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"


def test_rules_are_those_of_prometheus() -> None:
    (found,) = of_kind("PrometheusRule").values()

    files = sorted([*promql.RULES, *promql.ALERTS])
    assert found["spec"]["groups"] == [
        group for path in files for group in yaml.safe_load(path.read_text())["groups"]
    ]
    assert not of_kind("PrometheusRule", variant="least")


def test_alerts_select_the_jobs_of_any_release() -> None:
    (rule,) = (one for one in promql.alerts() if one["alert"] == "ServiceDown")
    (selector,) = promql.selectors(promql.parsed(rule["expr"]))
    (job,) = (one.value for one in selector.matchers.matchers if one.name == "job")

    # The operator names a job as its Service.
    assert all(re.fullmatch(job, name) for name in of_kind("Service"))


def public_roots() -> set[str]:
    """The first segments of the service's routes."""
    found = set()
    for entry in get_resolver().url_patterns:
        inner = entry.url_patterns if isinstance(entry, URLResolver) and not str(entry.pattern) else [entry]
        found |= {f"/{str(one.pattern).lstrip('^').partition('/')[0]}" for one in inner}
    return found


@pytest.mark.parametrize("variant", ["all", "haproxy"])
def test_ingress_exposes_every_route_but_health_and_metrics(variant: str) -> None:
    (ingress,) = of_kind("Ingress", variant=variant).values()
    services = of_kind("Service", variant=variant)

    for rule in ingress["spec"]["rules"]:
        paths = {one["path"]: one["backend"]["service"]["name"] for one in rule["http"]["paths"]}
        assert set(paths) == public_roots() - {"/health", "/metrics"} | {"/static"}
        assert set(paths.values()) <= set(services)
    assert [one["host"] for one in ingress["spec"]["rules"]] == ingress["spec"]["tls"][0]["hosts"]


def test_ingress_keeps_an_agent_with_one_pod() -> None:
    (nginx,) = of_kind("Ingress").values()
    haproxy = of_kind("Service", variant="haproxy")["agents-agentid-web"]["metadata"]["annotations"]

    assert nginx["metadata"]["annotations"]["nginx.org/lb-method"] == "hash $http_x_agent_id consistent"
    assert haproxy["haproxy.org/load-balance"] == "hdr(X-Agent-Id)"
    assert haproxy["haproxy.org/backend-config-snippet"].startswith("hash-type consistent")


def test_a_release_with_the_charts_name_does_not_repeat_it() -> None:
    done = run(
        "template", "agentid", str(CHART), "--values", str(EXAMPLE), "--show-only", "templates/services.yaml"
    )

    assert "name: agentid-web\n" in done.stdout
    assert run("show", "chart", str(CHART)).stdout.startswith("apiVersion: v2")
