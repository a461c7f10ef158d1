"""``openstack placementd explain``."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import parse_qsl

from osc_lib import exceptions
from osc_lib.command import command

from placementd_nova.osc import answers

# A node knows its own searches only, and a load balancer chooses the node.
TRIES = 12


def condition(atom: dict[str, Any]) -> str:
    """A condition of a query, in short."""
    kind = atom.get("atom", "")
    where = f" of group {atom['group']}" if atom.get("group") else ""
    if kind in ("room", "unit"):
        return f"{kind} for {atom.get('class')}:{atom.get('asked')}{where}"
    parts = [atom.get("class"), *atom.get("traits", ()), *atom.get("aggregates", ())]
    what = ", ".join(part for part in [*parts, atom.get("provider")] if part)
    return f"{kind} {what}".strip() + where


class Funnel(answers.Lines):
    """The conditions in their order, and the trees that remain after each."""

    def line(self, value: dict[str, Any]) -> str:
        gone = value.get("gone", 0)
        examples = ", ".join(root.get("name", "") for root in value.get("examples", ()))
        removed = f"; removes {gone}" if gone else ""
        such = f", such as {examples}" if gone and examples else ""
        return f"{value.get('left', 0)} after {condition(value)}{removed}{such}"


class Relaxations(answers.Lines):
    """Queries with fewer conditions that have candidates."""

    def line(self, value: dict[str, Any]) -> str:
        return f"{value.get('trees')} trees: {value.get('query')}"


class Nearest(answers.Lines):
    """Trees that nearly fit."""

    def line(self, value: dict[str, Any]) -> str:
        lacks = "; ".join(
            condition(unmet) + (f" ({unmet['free']} free)" if "free" in unmet else "")
            for unmet in value.get("lacks", ()))
        return f"{value.get('root', {}).get('name')}: {lacks}"


class Explain(command.ShowOne):
    """Show why a query for candidates finds what it finds."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "query", metavar="<query or request-id>",
            help="A query of GET /allocation_candidates, such as resources=VCPU:4, or the id of a "
            "request, such as Nova's, whose latest search is explained")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
        client = self.app.client_manager.placementd
        if parsed_args.query.startswith("req-"):
            return self._search(client, parsed_args.query)
        query = parse_qsl(parsed_args.query, keep_blank_values=True)
        answer = client.get(answers.PREFIX + "/explain", params=query, raise_exc=False)
        return self._columns({"query": parsed_args.query}, answers.judged(answer).json())

    def _search(self, client: Any, request: str) -> tuple[tuple[str, ...], Any]:
        for _ in range(TRIES):
            found = answers.ask(client, "/searches", request_id=request)["searches"]
            if found:
                break
        else:
            raise exceptions.CommandError(
                f"No node that answered knows a search of {request}. Each node keeps its last "
                "4,096 searches; placementctl explain asks all nodes.")
        search = found[0]
        about = {name: search.get(name) for name in ("query", "at", "candidates")}
        if search.get("claim"):
            about |= {"claim": search["claim"], "refusal": search.get("refusal")}
        return self._columns(about, search.get("explanation") or {})

    @staticmethod
    def _columns(about: dict[str, Any], found: dict[str, Any]) -> tuple[tuple[str, ...], Any]:
        shown = dict(about)
        for name in ("verdict", "reason", "trees", "with_candidates", "undecided"):
            if name in found:
                shown[name] = found[name]
        for name, column in (
            ("unknown", answers.Json), ("unused", answers.Json), ("funnel", Funnel),
            ("relaxations", Relaxations), ("nearest", Nearest),
        ):
            if found.get(name):
                shown[name] = column(found[name])
        return tuple(shown), tuple(shown.values())
