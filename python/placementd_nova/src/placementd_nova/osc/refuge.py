"""``openstack placementd refuge``."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from placementd_nova.osc import answers
from placementd_nova.osc.explain import condition


class FindRefuge(command.Lister):
    """List where the consumers of hosts could go if the hosts had to be emptied."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "hosts", metavar="<host>", nargs="+", help="UUID or name of a host to empty")
        parser.add_argument(
            "--required", metavar="<traits>",
            help="Require new hosts to have these traits, separated by commas; !TRAIT forbids one")
        parser.add_argument(
            "--member-of", metavar="<aggregate>", help="Require new hosts to be in this aggregate")
        parser.add_argument(
            "--order", choices=("pack", "spread", "any"), default="pack",
            help="Hosts to prefer: full ones, empty ones, or any [default: pack]")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
        client = self.app.client_manager.placementd
        found = answers.ask(
            client, "/refuge", provider=[_uuid(client, host) for host in parsed_args.hosts],
            required=parsed_args.required, member_of=parsed_args.member_of,
            order=parsed_args.order, moves="true")
        left = [
            (one["consumer"], answers.Json(one["resources"]), None, _reason(found, one))
            for one in found["left"]
        ]
        moves = [
            (one["consumer"], answers.Json(_sum(one["to"])), _hosts(one["to"]), None)
            for one in found["moves"]
        ]
        self._warn(found)
        return ("Consumer", "Resources", "To", "Why not"), left + moves

    def _warn(self, found: dict[str, Any]) -> None:
        if not found["complete"]:
            self.log.warning("The time limit was reached: some consumers were not searched for.")
        elif not found["exact"]:
            self.log.warning("Another assignment may have room for more of the consumers.")


def _uuid(client: Any, host: str) -> str:
    """The UUID of a provider that is given by UUID or name."""
    for name in ("uuid", "name"):
        answer = client.get("/resource_providers", params={name: host}, raise_exc=False)
        # A name is not a valid UUID.
        found = answer.json()["resource_providers"] if answer.status_code == 200 else []
        if found:
            return str(found[0]["uuid"])
    raise exceptions.CommandError(f"No resource provider has the UUID or name {host}.")


def _reason(found: dict[str, Any], left: dict[str, Any]) -> str | None:
    """The condition that no host meets."""
    if left.get("why") is None:
        return None
    why = found["explanations"][left["why"]]
    cause = why.get("cause")
    return condition(why["funnel"][cause]) if cause is not None else why.get("reason")


def _sum(allocations: list[dict[str, Any]]) -> dict[str, int]:
    resources: dict[str, int] = {}
    for one in allocations:
        for name, units in one["resources"].items():
            resources[name] = resources.get(name, 0) + units
    return resources


def _hosts(allocations: list[dict[str, Any]]) -> str:
    return ", ".join(sorted({one["root"]["name"] for one in allocations}))
