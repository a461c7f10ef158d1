"""``openstack placementd capacity``."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib.command import command

from placementd_nova.osc import answers

NUMBERS = ("providers", "total", "reserved", "capacity", "used", "free", "largest_free")


class ShowCapacity(command.Lister):
    """List capacity, usage and free units of each resource class."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--class", dest="resource_class", metavar="<class>", help="Only this resource class")
        parser.add_argument(
            "--by", choices=("aggregate", "trait", "provider", "tree"),
            help="Also group by aggregate, trait, provider or tree of providers")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
        found = answers.ask(
            self.app.client_manager.placementd, "/capacity",
            by=parsed_args.by, **{"class": parsed_args.resource_class})
        head = ("Class", *([parsed_args.by.capitalize()] if parsed_args.by else []))
        names = [name.replace("_", " ").capitalize() for name in NUMBERS]
        rows = [
            (row["class"], *self._place(row, parsed_args.by), *(row.get(name) for name in NUMBERS))
            for row in found["capacity"]
        ]
        return (*head, *names), rows

    @staticmethod
    def _place(row: dict[str, Any], by: str | None) -> list[str]:
        if by is None:
            return []
        return [row["provider"]["name"] if by in ("provider", "tree") else row[by]]
