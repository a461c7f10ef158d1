#!/usr/bin/env python3
"""Validates compose.yaml and the Helm chart with their tools, and prints the rendered result as JSON.

Needs check-jsonschema, helm-python-sdk and kubernetes-validate.
"""
import json
import pathlib
import subprocess
import sys

import kubernetes_validate
import yaml
from helm_python import Chart, lint

HERE = pathlib.Path(__file__).parent
CHART = HERE / "helm" / "placementd"


def manifests(values: dict) -> list:
    with Chart.load(CHART) as chart:
        chart.validate_schema(values)
        rendered = chart.render(values, name="cloud", namespace="openstack")
    found = [one for text in rendered.values() for one in yaml.safe_load_all(text) if one]
    for one in found:
        # A custom resource, which Kubernetes' schemas do not contain.
        if one["kind"] == "PrometheusRule":
            continue
        kubernetes_validate.validate(one, "1.27", strict=True)
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    return found


def main() -> None:
    tools = pathlib.Path(sys.executable).parent
    schema = [tools / "check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    compose = HERE / "compose.yaml"
    subprocess.run([*schema, compose], check=True, stdout=sys.stderr)
    report = lint(CHART, strict=True)
    # Severity 1 is a remark, such as a missing icon.
    wrong = [message for message in report["messages"] if message["severity"] > 1]
    if wrong or report["errors"]:
        sys.exit(f"helm lint: {wrong} {report['errors']}")
    json.dump({
        "compose": yaml.safe_load(compose.read_text()),
        "chart": manifests({}),
        "replaced": manifests({
            "alerts": True,
            "dashboards": True,
            "formed": True,
            "numbers": [1, 4, 3],
            "tlsSecretName": "certificates",
            "apiTlsSecretName": "api",
            "caSecretName": "authorities",
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        }),
    }, sys.stdout)


if __name__ == "__main__":
    main()
