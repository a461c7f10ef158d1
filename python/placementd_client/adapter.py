"""The adapter: consistency of reads, and repetition of requests."""

from __future__ import annotations

import logging
import ssl
import threading
import time
import uuid
from typing import Any, TypeAlias

import requests
import urllib3
from keystoneauth1 import adapter, exceptions, session as ks_session
from requests.structures import CaseInsensitiveDict

from placementd_client.events import Events

LOG = logging.getLogger(__name__)

MIN_INDEX = "Placement-Min-Index"
REQUEST_ID = "X-OpenStack-Request-Id"
# Pauses between two attempts, in seconds. Each pause is twice as long as the one before.
PAUSE_FIRST = 0.05
PAUSE_MAX = 1.0
# Causes of a failed request which mean that it was not sent.
UNSENT = (urllib3.exceptions.ConnectTimeoutError, ssl.SSLCertVerificationError)
# Error codes which state that a write had no effect.
HARMLESS = frozenset({
    "placement.partition.misdirected",
    "placement.partition.not_found",
    "placement.too_many_requests",
    "placement.unavailable.busy",
    "placement.unavailable.identity",
    "placement.unavailable.nothing_committed",
})

# The answer to an attempt, or the error of the connection.
Result: TypeAlias = "requests.Response | exceptions.ConnectionError"


class OutcomeUnknown(exceptions.ClientException):
    """The write may or may not be committed. Read the state before you repeat it."""


class PlacementAdapter(adapter.Adapter):
    """An adapter whose reads never see an older state than its own earlier requests.

    It repeats reads, and writes that provably had no effect: there was no connection, or the
    answer states that nothing was committed.

    Threads may share an adapter, and then share ``min_index``.

    :param patience: Total time for all attempts of a request, in seconds. It replaces
        ``connect_retries`` and ``status_code_retries``, which have no effect.
    :param repeat_unknown: Also repeats writes whose outcome is unknown. This is safe for writes
        that cannot be applied twice, because they contain a generation or a UUID chosen by the
        caller. A repetition may then conflict with the first attempt, except for a claim (``PUT``
        or ``POST /allocations``): all attempts have the same request id, by which nodes recognize
        a repeated claim.
    :param kwargs: Parameters of :class:`keystoneauth1.adapter.Adapter`. ``service_type`` is
        ``placement`` by default.
    """

    def __init__(
        self,
        session: ks_session.Session,
        *,
        patience: float = 30.0,
        repeat_unknown: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("service_type", "placement")
        super().__init__(session, **kwargs)
        self.patience = patience
        self.repeat_unknown = repeat_unknown
        #: The greatest ``Placement-Index`` of all successful answers. Assign a token of another
        #: client to see its writes, or ``None`` to forget the past, such as after a restore.
        self.min_index: str | None = None
        self._lock = threading.Lock()

    def request(self, url: str, method: str, **kwargs: Any) -> requests.Response:
        """Sends a request, repeats it while that is safe, and returns the last answer.

        :raises OutcomeUnknown: if a write may be committed, even with ``raise_exc=False``.
        :raises keystoneauth1.exceptions.ClientException: as
            :meth:`keystoneauth1.session.Session.request`.
        """
        raises = kwargs.pop("raise_exc", None)
        raises = self.raise_exc if raises is None else raises
        is_read = method.upper() in ("GET", "HEAD", "OPTIONS")
        headers = CaseInsensitiveDict(kwargs.pop("headers", None) or {})
        if is_read and self.min_index is not None:
            headers.setdefault(MIN_INDEX, self.min_index)
        elif not is_read and self.repeat_unknown:
            headers.setdefault(REQUEST_ID, self.global_request_id or f"req-{uuid.uuid4()}")
        deadline = time.monotonic() + self.patience
        pause = PAUSE_FIRST
        unknown = False
        while _is_unavailable(result := self._attempt(url, method, headers, kwargs)):
            unknown |= not (is_read or _had_no_effect(result))
            rest = _retry_after(result, pause)
            is_over = _is_final(result) or time.monotonic() + rest > deadline
            if unknown and (is_over or not self.repeat_unknown):
                error = f"the outcome of {method} {url} is unknown: {_reason(result)}"
                raise OutcomeUnknown(error)
            if is_over:
                break
            LOG.info("repeating %s %s in %.2f s: %s", method, url, rest, _reason(result))
            time.sleep(rest)
            pause = min(2 * pause, PAUSE_MAX)
        if isinstance(result, exceptions.ConnectionError):
            raise result
        if result.ok:
            self.remember(result.headers.get("Placement-Index"))
        elif raises is not False:
            raise exceptions.from_response(result, method, url)
        return result

    def remember(self, index: str | None) -> None:
        """Makes later reads include the state at this ``Placement-Index``."""
        with self._lock:
            if index is not None and _supersedes(index, self.min_index):
                self.min_index = index

    def events(self, after: str | None = None, **filters: str) -> Events:
        """The changes after a token; without a token, the whole content and then the changes.

        :param filters: Parameters of ``GET /placementd/v1/events``: ``kind``, ``provider``,
            ``consumer``, ``project``, ``class_`` (with an underscore), ``rewritten``.
        """
        return Events(self, self.remember, after, filters)

    def _attempt(
        self, url: str, method: str, headers: CaseInsensitiveDict[str], kwargs: dict[str, Any]
    ) -> Result:
        own: dict[str, Any] = {"raise_exc": False, "connect_retries": 0, "status_code_retries": 0}
        # A copy, because the session adds its own headers.
        own["headers"] = headers.copy()
        try:
            return super().request(url, method, **kwargs | own)
        except exceptions.ConnectionError as error:
            return error


def _code(answer: requests.Response) -> str | None:
    """The error code of the API."""
    try:
        code: str | None = answer.json()["errors"][0].get("code")
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return code


def _reason(result: Result) -> str:
    if isinstance(result, requests.Response):
        return f"HTTP {result.status_code}, {_code(result)}"
    return str(result)


def _is_unavailable(result: Result) -> bool:
    """Whether the service gave no answer, 503, or a 429 of its own and not of a proxy."""
    if not isinstance(result, requests.Response):
        return True
    return result.status_code == 503 or (result.status_code == 429 and _code(result) in HARMLESS)


def _had_no_effect(result: Result) -> bool:
    """Whether a write provably had no effect."""
    return _code(result) in HARMLESS if isinstance(result, requests.Response) else _unsent(result)


def _unsent(error: exceptions.ConnectionError) -> bool:
    """Whether there was no connection. keystoneauth raises the same exception for a lost one."""
    cause: object = error.__context__
    while isinstance(cause, BaseException):
        if isinstance(cause, UNSENT):
            return True
        cause = getattr(cause, "reason", None) or next(iter(cause.args), None)
    return False


def _is_final(result: Result) -> bool:
    """Whether a repetition would fail too: the certificate of the service is not accepted."""
    return isinstance(result, exceptions.SSLError) and _unsent(result)


def _retry_after(result: Result, default: float) -> float:
    """The pause that a proxy asks for; nodes do not send this header."""
    if not isinstance(result, requests.Response):
        return default
    seconds = result.headers.get("Retry-After", "")
    return float(seconds) if seconds.isdecimal() else default


def _supersedes(index: str, known: str | None) -> bool:
    """Whether an index is later. Indexes of different epochs cannot be compared; then it is."""
    epoch, _, number = index.partition(".")
    known_epoch, _, known_number = (known or "").partition(".")
    if epoch != known_epoch or not (number.isdecimal() and known_number.isdecimal()):
        return index != known
    return int(number) > int(known_number)
