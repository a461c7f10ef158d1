"""The request ``POST /placementd/v1/claims``, sent with Nova's own client of Placement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keystoneauth1 import exceptions
from oslo_log import log as logging

if TYPE_CHECKING:
    import requests
    from nova.context import RequestContext
    from nova.scheduler.client.report import SchedulerReportClient

    from placementd_nova.groups import HardGroup
    from placementd_nova.places import Assignment

LOG = logging.getLogger(__name__)

ROUTES = "/placementd/v1"
CLAIMS = "/placementd/v1/claims"
# The microversion of the requests; the routes of placementd answer alike in all of them.
VERSION = "1.39"
CONSUMER_TYPE = "INSTANCE"
# How long an answer without claims counts, in seconds: an upgrade may add them.
RECHECK_S = 60.0


class NotOffered(Exception):
    """The service has no claims: it is openstack-placement, or an older placementd."""


class Refused(Exception):
    """The claim was refused, and nothing was written.

    :ivar details: Members of the error in the answer.
    """

    def __init__(self, details: dict[str, Any]) -> None:
        super().__init__(details.get("detail", "the claim was refused"))
        self.details = details


class NoRoom(Refused):
    """At least one choice keeps all limits, and no choice has room."""


class GroupBroken(Refused):
    """Each choice would break the rule of the server group."""


class OverCeiling(Refused):
    """Each choice would exceed a limit of the project, or break the rule of the group."""


class Conflict(Refused):
    """A consumer exists, or has another generation."""


class TooLarge(Refused):
    """The claim exceeds a limit of the service."""


class Failed(Exception):
    """The service gave an unexpected answer or none; the claim may or may not be committed."""


REFUSALS = {
    "placement.claim.no_room": NoRoom,
    "placement.claim.group": GroupBroken,
    "placement.claim.over_ceiling": OverCeiling,
    "placement.concurrent_update": Conflict,
    "placement.limit_exceeded": TooLarge,
}


@dataclass(frozen=True)
class Owner:
    """The owner of all consumers of a claim."""

    project_id: str
    user_id: str


@dataclass(frozen=True)
class Claimed:
    """An accepted claim.

    :ivar choice: Index of the choice that was taken.
    :ivar generations: The generation of each consumer.
    """

    choice: int
    generations: dict[str, int]


@dataclass(frozen=True)
class Claim:
    """A claim for some instances.

    :ivar choices: Whole assignments; the first that fits is taken.
    :ivar generations: The generations of instances that hold something already.
    :ivar kept: What the instances hold and keep, by instance and provider.
    """

    owner: Owner
    instances: list[str]
    choices: list[Assignment]
    ceilings: list[dict[str, Any]] = field(default_factory=list)
    group: HardGroup | None = None
    generations: dict[str, int] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """The JSON of the request."""
        consumers = {
            uuid: {
                "project_id": self.owner.project_id,
                "user_id": self.owner.user_id,
                "consumer_type": CONSUMER_TYPE,
                "consumer_generation": self.generations.get(uuid),
            }
            for uuid in self.instances
        }
        body: dict[str, Any] = {
            "consumers": consumers,
            "choices": [self._choice(choice) for choice in self.choices],
        }
        if self.ceilings:
            body["ceilings"] = self.ceilings
        if self.group:
            body |= self.group.body()
        return body

    def _choice(self, choice: Assignment) -> dict[str, Any]:
        return {
            uuid: {"allocations": place.allocations | self.kept.get(uuid, {})}
            for uuid, place in zip(self.instances, choice)
        }


class Claims:
    """Claims with the client of Placement that Nova's scheduler uses.

    :param client: Returns that client.
    """

    def __init__(self, client: Callable[[], SchedulerReportClient]) -> None:
        self._client = client
        self._is_offered: bool | None = None
        self._absent_until = 0.0

    def is_offered(self, context: RequestContext) -> bool:
        """Whether the service has claims. An answer without them counts for a minute."""
        if not self._is_offered and time.monotonic() >= self._absent_until:
            self._note(self._ask(context))
        return bool(self._is_offered)

    def _ask(self, context: RequestContext) -> bool:
        try:
            answer = self._client().get(ROUTES, VERSION, context.global_id)
        except exceptions.ClientException:
            return True
        if answer.status_code == 200:
            body = answer.json()
            return any(route.get("path") == CLAIMS for route in body.get("routes", []))
        # Any other answer says nothing about claims, but that to the claim itself will.
        return answer.status_code not in (404, 405)

    def _note(self, is_offered: bool) -> None:
        if not is_offered:
            self._absent_until = time.monotonic() + RECHECK_S
        if is_offered == self._is_offered:
            return
        self._is_offered = is_offered
        if is_offered:
            LOG.info("Instances are claimed with POST %s", CLAIMS)
        else:
            LOG.warning(
                "The Placement service has no %s: instances are claimed as by nova-scheduler, so "
                "Nova's second check of quotas and the late check of server groups are needed",
                CLAIMS,
            )

    def claim(self, context: RequestContext, claim: Claim) -> Claimed:
        """Sends a claim.

        :raises NotOffered: if the service has no claims.
        :raises Refused: a subclass, if the claim was refused.
        :raises Failed: after any other answer, or without one.
        """
        try:
            answer = self._client().post(CLAIMS, claim.body(), VERSION, context.global_id)
        except exceptions.ClientException as error:
            raise Failed(str(error)) from error
        if answer.status_code == 200:
            body = answer.json()
            return Claimed(body["choice"], body.get("consumer_generations", {}))
        error = first_error(answer)
        code = error.get("code")
        if answer.status_code in (404, 405):
            self._note(False)
            raise NotOffered
        if answer.status_code < 500 and code in REFUSALS:
            raise REFUSALS[code](error)
        raise Failed(f"HTTP {answer.status_code}: {error.get('detail', answer.text)}")


def first_error(answer: requests.Response) -> dict[str, Any]:
    """The error of an answer in the format of OpenStack; empty if it has another format."""
    try:
        error = answer.json()["errors"][0]
    except (ValueError, LookupError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}


def resource_classes(choices: Iterable[Assignment]) -> set[str]:
    """The resource classes that any choice asks for."""
    return {
        name
        for choice in choices
        for place in choice
        for allocation in place.allocations.values()
        for name in allocation["resources"]
    }
