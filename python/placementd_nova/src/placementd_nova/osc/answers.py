"""Requests of the commands, and the parts of answers that people read."""

from __future__ import annotations

import json
from typing import Any

from cliff import columns
from osc_lib import exceptions

PREFIX = "/placementd/v1"


def ask(client: Any, path: str, **parameters: Any) -> Any:
    """Sends a GET; returns the JSON of the answer.

    :param parameters: Query parameters, without those that are None.
    """
    parameters = {name: value for name, value in parameters.items() if value is not None}
    return judged(client.get(PREFIX + path, params=parameters, raise_exc=False)).json()


def judged(answer: Any) -> Any:
    """The answer, if the request succeeded.

    :raises CommandError: with the message of the service.
    """
    if answer.status_code == 200:
        return answer
    try:
        error = answer.json()["errors"][0]
    except (ValueError, LookupError, TypeError):
        error = {}
    if answer.status_code == 404 and "placementd" not in error.get("detail", ""):
        raise exceptions.CommandError(f"The Placement service has no {answer.request.path_url}.")
    detail = error.get("detail") or answer.text.strip()
    raise exceptions.CommandError(f"{detail} (HTTP {answer.status_code}, {error.get('code')})")


class Json(columns.FormattableColumn):
    """A value of the answer, on one line for people."""

    def human_readable(self) -> str:
        return json.dumps(self._value, sort_keys=True) if self._value is not None else ""


class Key(columns.FormattableColumn):
    """The key of a changed object: its names, such as a consumer and a provider."""

    def human_readable(self) -> str:
        return " ".join(map(str, self._value.values()))


class Lines(columns.FormattableColumn):
    """A list, with a line for each member."""

    def human_readable(self) -> str:
        return "\n".join(self.line(value) for value in self._value or ())

    def line(self, value: Any) -> str:
        """The line of a member."""
        return str(value)
