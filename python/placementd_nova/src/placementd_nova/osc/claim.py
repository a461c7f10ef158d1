"""``openstack placementd claim``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from placementd_nova.osc import answers


class Claim(command.ShowOne):
    """Claim resources for consumers: the first choice that fits, or a candidate of a query."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--file", metavar="<file>",
            help="The body of POST /placementd/v1/claims as JSON; - reads standard input")
        what.add_argument(
            "--query", metavar="<query>",
            help="Claim a candidate of this query of GET /allocation_candidates for each consumer")
        parser.add_argument(
            "--order", choices=("pack", "spread", "any"), default="any",
            help="With --query: the candidates to prefer (default: any)")
        parser.add_argument(
            "--consumer", action="append", default=[], metavar="<uuid>",
            help="With --query: a new consumer (repeat for several)")
        parser.add_argument(
            "--project", metavar="<project-id>",
            help="With --query: project of the consumers (default: that of your token)")
        parser.add_argument(
            "--user", metavar="<user-id>",
            help="With --query: user of the consumers (default: that of your token)")
        parser.add_argument(
            "--type", metavar="<type>", help="With --query: type of the consumers")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
        client = self.app.client_manager.placementd
        body = self._read(parsed_args.file) if parsed_args.file else self._body(client, parsed_args)
        answer = client.post(answers.PREFIX + "/claims", json=body, raise_exc=False)
        found = answers.judged(answer).json()
        shown = {
            "choice": found["choice"],
            "repeated": found["repeated"],
            "allocations": answers.Json(found["allocations"]),
            "consumer_generations": answers.Json(found["consumer_generations"]),
        }
        return tuple(shown), tuple(shown.values())

    @staticmethod
    def _read(path: str) -> Any:
        try:
            if path == "-":
                return json.load(sys.stdin)
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            raise exceptions.CommandError(f"{path}: {error}") from error

    @staticmethod
    def _body(client: Any, parsed_args: argparse.Namespace) -> dict[str, Any]:
        if not parsed_args.consumer:
            raise exceptions.CommandError("--query needs at least one --consumer")
        consumer = {
            "project_id": parsed_args.project or client.get_project_id(),
            "user_id": parsed_args.user or client.get_user_id(),
            "consumer_generation": None,
        }
        missing = [name for name in ("project", "user") if not consumer[f"{name}_id"]]
        if missing:
            raise exceptions.CommandError(f"give --{missing[0]}: the token has none")
        if parsed_args.type:
            consumer["consumer_type"] = parsed_args.type
        return {
            "consumers": dict.fromkeys(parsed_args.consumer, consumer),
            "want": {"query": parsed_args.query, "order": parsed_args.order},
        }
