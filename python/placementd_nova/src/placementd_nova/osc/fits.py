"""``openstack placementd fits``."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib.command import command

from placementd_nova.osc import answers


class ListFits(command.Lister):
    """List how often the named queries of the service, such as those of flavors, fit."""

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
        found = answers.ask(self.app.client_manager.placementd, "/fits")
        rows = [
            (one["name"], one["level"], one.get("count"), one.get("exact"), one.get("unknown"))
            for one in found["fits"]
        ]
        return ("Name", "Level", "Count", "Exact", "Unknown"), rows
