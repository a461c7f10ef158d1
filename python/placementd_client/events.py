"""The stream of changes, which resumes after an interruption."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import requests
from keystoneauth1.adapter import Adapter

LOG = logging.getLogger(__name__)

# Delay before a stream that ended is requested again, in seconds.
PAUSE = 1.0
# Timeouts of connecting and of waiting for data. A node sends a line at least every five seconds.
TIMEOUTS = (5.0, 30.0)
# Members of lines whose value is the token to resume after.
TOKENS = ("index", "progress", "snapshot_end", "next")


class Events:
    """An endless iterator over the lines of ``GET /placementd/v1/events``.

    The REST API's documentation describes the lines. The iterator handles ``end`` itself: it
    requests the stream again, after the last complete entry. A ``snapshot`` line begins the whole
    content; discard your copy then, also if you have already received a part of a snapshot.

    An exception ends the iteration, such as that of a cluster that cannot answer. To continue,
    iterate again, or create an iterator with the token in ``after``.
    """

    def __init__(
        self,
        adapter: Adapter,
        remember: Callable[[str], None],
        after: str | None,
        filters: dict[str, str],
    ) -> None:
        #: Token to resume after once the current line is processed; ``None`` within a snapshot.
        self.after = after
        self._adapter = adapter
        self._remember = remember
        self._query = {name.rstrip("_"): value for name, value in filters.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            ended = None
            for line in self._lines():
                self._note(line)
                ended = line.get("end")
                if ended is None:
                    yield line
            # A node ends each stream after five minutes, which is no incident.
            if ended != "lifetime":
                LOG.warning("the stream ended (%s); resuming after %s", ended, self.after)
            time.sleep(PAUSE)

    def _lines(self) -> Iterator[dict[str, Any]]:
        """The lines of one stream; fewer if the connection is lost."""
        query = self._query | {"or_snapshot": "true"}
        if self.after is not None:
            query["after"] = self.after
        with self._adapter.get(
            "/placementd/v1/events", params=query, stream=True, timeout=TIMEOUTS, log=False
        ) as answer:
            try:
                for line in answer.iter_lines(chunk_size=64 * 1024):
                    yield json.loads(line)
            except (requests.RequestException, ValueError) as error:
                # A lost connection may cut a line, which then is not JSON.
                LOG.warning("the stream of events is interrupted: %s", error)

    def _note(self, line: dict[str, Any]) -> None:
        """Records the position of the stream."""
        if "snapshot" in line:
            self.after = None
        token = next((line[name] for name in TOKENS if line.get(name)), None)
        if token is not None:
            self.after = token
            # Reads by this adapter see the state of the event.
            self._remember(token)
