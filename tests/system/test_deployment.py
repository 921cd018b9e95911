"""The files of a deployment on many machines: valid, as the page shows them, and with settings that work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from portbook.settings import SETTINGS, load_settings

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
PAGE = ROOT / "docs" / "how-to" / "run-on-many-machines.md"
KUBERNETES = DEPLOY / "kubernetes"
MANIFESTS = sorted(path for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml")
SHOWN = ("nginx/portbook.conf", "haproxy/haproxy.cfg", "portbook.toml")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
@pytest.mark.parametrize("version", ["1.30", "1.34"])
def test_a_manifest_is_valid(path: Path, version: str) -> None:
    kubernetes_validate.validate(read(path), version, strict=True)


def test_a_mistake_in_a_manifest_is_found() -> None:
    deployment = read(KUBERNETES / "deployment.yaml")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="livenesProbe"):
        kubernetes_validate.validate(deployment, "1.34", strict=True)


def test_the_kustomization_names_every_file() -> None:
    made = read(KUBERNETES / "kustomization.yaml")
    assert sorted(made["resources"]) == [path.name for path in MANIFESTS]
    (settings,) = made["configMapGenerator"]
    assert all((KUBERNETES / file).exists() for file in settings["files"])


def test_pods_have_no_rights_no_secret_of_their_own_and_a_selector_that_finds_them() -> None:
    by_kind = {read(path)["kind"]: read(path) for path in MANIFESTS}
    assert set(by_kind) == {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}
    template = by_kind["Deployment"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    labels = template["metadata"]["labels"]
    assert by_kind["Service"]["spec"]["selector"] == labels
    assert by_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert by_kind["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert by_kind["PodDisruptionBudget"]["spec"]["minAvailable"] < by_kind["Deployment"]["spec"]["replicas"]
    assert template["spec"]["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    secret = {each["name"] for each in container["env"] if "secretKeyRef" in each.get("valueFrom", {})}
    assert secret == {"PORTBOOK_STORE_URL", "PORTBOOK_OPERATOR_KEY"}
    assert {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "startup")} == {"/livez"}
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_compose_names_files_that_are_there_and_three_nodes_of_one_kind() -> None:
    path = DEPLOY / "compose" / "compose.yaml"
    made = read(path)
    assert all((path.parent / each["file"]).exists() for each in made["configs"].values())
    nodes = {name: each for name, each in made["services"].items() if name.startswith("portbook-")}
    assert len(nodes) == 3
    for node in nodes.values():
        assert node["read_only"]
        assert set(node["secrets"]) <= set(made["secrets"])
    for service in made["services"].values():
        assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= set(made["volumes"])
    balancer = (DEPLOY / "haproxy" / "haproxy.cfg").read_text()
    assert set(re.findall(r"(portbook-\d):8765", balancer)) == set(nodes)


@pytest.mark.parametrize("path", [DEPLOY / "portbook.toml", KUBERNETES / "portbook.toml"], ids=str)
def test_the_settings_of_a_node_are_read(path: Path) -> None:
    settings = load_settings(path, {"PORTBOOK_STORE_URL": "postgresql://database/portbook"}, {}, None)
    assert settings.is_shared
    assert settings.ship == "postgresql"


def test_variables_of_portbook_are_those_that_it_knows() -> None:
    known = {setting.env for setting in SETTINGS} | {"PORTBOOK_CONFIG", "PORTBOOK_OPERATOR_KEY"}
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            assert set(re.findall(r"\bPORTBOOK_\w+", path.read_text())) <= known, path


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_shows_the_file_as_it_is(name: str) -> None:
    block = rf"`deploy/{re.escape(name)}`[^`]*?\n\n```\w*\n(.*?)```\n"
    shown = re.search(block, PAGE.read_text(), re.DOTALL)
    assert shown is not None, name
    assert shown[1] == (DEPLOY / name).read_text()
