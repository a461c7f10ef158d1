"""``openstack placementd history`` and ``openstack placementd events``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from osc_lib.command import command

from placementd_nova.osc import answers

COLUMNS = ("Index", "At", "Verb", "Request ID", "Kind", "Key", "Before", "After")
# The largest page of the service.
PAGE = 1000


class _Changes(command.Lister):
    """A row for each change."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--kind", metavar="<kind>[,<kind>...]",
            help="Only changes of these kinds: provider, inventory, trait, aggregate, class, "
            "consumer, allocation")
        parser.add_argument("--provider", metavar="<uuid>", help="Only changes of this provider")
        parser.add_argument("--consumer", metavar="<uuid>", help="Only changes of this consumer")
        parser.add_argument(
            "--project", metavar="<project-id>", help="Only changes of consumers of this project")
        parser.add_argument(
            "--class", dest="resource_class", metavar="<class>",
            help="Only changes of this resource class")
        return parser

    @staticmethod
    def filters(parsed_args: argparse.Namespace) -> dict[str, Any]:
        """The query parameters of the filters."""
        names = ("kind", "provider", "consumer", "project")
        chosen = {name: getattr(parsed_args, name) for name in names}
        return chosen | {"class": parsed_args.resource_class}

    @staticmethod
    def rows(entry: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of a log entry."""
        head = [entry.get(name) for name in ("index", "at", "verb", "request_id")]
        for change in entry["changes"]:
            values = (answers.Json(change[name]) for name in ("before", "after"))
            yield (*head, change["kind"], answers.Key(change["key"]), *values)


class ListHistory(_Changes):
    """List changes, newest first."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--request-id", metavar="<id>", help="Only changes of this request, such as Nova's")
        parser.add_argument(
            "--limit", type=int, default=50, metavar="<number>",
            help="Number of log entries to list (default: 50)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
        found: list[tuple[Any, ...]] = []
        before, left = None, parsed_args.limit
        while left > 0:
            page = answers.ask(
                self.app.client_manager.placementd, "/history", before=before,
                limit=min(left, PAGE), request_id=parsed_args.request_id,
                **self.filters(parsed_args))
            left -= len(page["history"])
            found += [row for entry in page["history"] for row in self.rows(entry)]
            before = page["next"]
            if before is None:
                break
        return COLUMNS, found


class ListEvents(_Changes):
    """List changes after a token, oldest first; without a token, the content and its changes."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--after", metavar="<token>",
            help="List the changes after this token, which an earlier command has printed")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], Any]:
        parameters = {"after": parsed_args.after, **self.filters(parsed_args)}
        given = {name: value for name, value in parameters.items() if value is not None}
        answer = answers.judged(self.app.client_manager.placementd.get(
            answers.PREFIX + "/events", params=given | {"follow": "false"}, raise_exc=False))
        lines = [json.loads(line) for line in answer.text.splitlines() if line]
        token = next(
            (line[name] for line in reversed(lines) for name in ("progress", "next")
             if line.get(name)), None)
        if token:
            # Standard output has the rows only.
            self.app.stderr.write(f"--after {token} lists the changes from here on.\n")
        return COLUMNS, [row for line in lines for row in self._rows_of(line)]

    def _rows_of(self, line: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        if "changes" in line:
            yield from self.rows(line)
        elif "value" in line:
            change = {"kind": line["kind"], "key": line["key"], "before": None,
                      "after": line["value"]}
            yield from self.rows({"changes": [change]})
