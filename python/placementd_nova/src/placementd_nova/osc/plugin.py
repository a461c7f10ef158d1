"""What the openstack client loads: the name of the API, and its client."""

from __future__ import annotations

import argparse
from typing import Any

from keystoneauth1 import adapter

API_NAME = "placementd"
API_VERSION_OPTION = "os_placementd_api_version"
DEFAULT_API_VERSION = "1"
API_VERSIONS = ("1",)
# How the service reads queries.
MICROVERSION = "1.39"


def make_client(instance: Any) -> adapter.Adapter:
    """An adapter for the Placement service of the catalog."""
    return adapter.Adapter(
        instance.session,
        service_type="placement",
        region_name=instance.region_name,
        interface=instance.interface,
        default_microversion=MICROVERSION,
    )


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Adds no options: there is one version."""
    return parser
