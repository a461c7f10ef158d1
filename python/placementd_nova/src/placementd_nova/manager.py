"""Nova's scheduler manager, with one claim for all instances of a request."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import nova.conf
import oslo_messaging as messaging
from nova import exception, objects
from nova.scheduler import manager
from oslo_log import log as logging

from placementd_nova import claims, groups, limits, places
from placementd_nova.claims import Claim, Owner
from placementd_nova.places import Assignment, Place, Room

if TYPE_CHECKING:
    from nova.context import RequestContext
    from nova.scheduler.host_manager import HostState

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# How often a request for several instances searches, if others took what it found.
SEARCHES = 4
# How often a request claims, if its server group gets members at the same time.
ATTEMPTS = 3
# For users, who may not know more about hosts.
TAKEN = "Other servers took the hosts that were found."


class _Outdated(Exception):
    """Others took what the search for candidates found."""


class ClaimingSchedulerManager(manager.SchedulerManager):
    """Chooses hosts as Nova's manager does, and lets the Placement service choose among the best.

    With a service that has no claims, everything is done by Nova's manager.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._claims = claims.Claims(lambda: self.placement_client)
        super().__init__(*args, **kwargs)

    @messaging.expected_exceptions(exception.NoValidHost)
    def select_destinations(self, context: RequestContext, *args: Any, **kwargs: Any) -> Any:
        """Searches again, if others took what the first search had found."""
        for _ in range(SEARCHES):
            # Each search adds conditions to its request.
            own = copy.deepcopy(kwargs)
            try:
                return super().select_destinations(context, *args, **own)
            except _Outdated:
                LOG.info("Searching again, since others took the hosts that were found")
        raise exception.NoValidHost(reason=TAKEN)

    def _schedule(
        self,
        context: RequestContext,
        spec_obj: objects.RequestSpec,
        instance_uuids: list[str] | None,
        alloc_reqs_by_rp_uuid: dict[str, list[dict[str, Any]]] | None,
        provider_summaries: dict[str, Any] | None,
        allocation_request_version: str | None = None,
        return_alternates: bool = False,
    ) -> list[list[objects.Selection]]:
        elevated = context.elevated()
        # A rebuild on the same host claims nothing.
        claims_something = bool(instance_uuids) and alloc_reqs_by_rp_uuid is not None
        if claims_something and self._claims.is_offered(elevated):
            request = Request(
                # Scheduling changes the request: Nova's manager may need it unchanged.
                elevated, spec_obj.obj_clone(), instance_uuids, alloc_reqs_by_rp_uuid,
                provider_summaries or {}, allocation_request_version,
            )
            try:
                return self._schedule_by_claim(request, return_alternates)
            except claims.NotOffered:
                LOG.debug("The service has no claims")
        return super()._schedule(
            context, spec_obj, instance_uuids, alloc_reqs_by_rp_uuid, provider_summaries,
            allocation_request_version, return_alternates,
        )

    def _schedule_by_claim(
        self, request: Request, return_alternates: bool
    ) -> list[list[objects.Selection]]:
        hosts = self._hosts(request)
        if len(request.instances) == 1:
            self._aim(request, 0)
            hosts = self._get_sorted_hosts(request.spec, hosts, 0)
            chosen = self._claim(request, list(places.batches(hosts)))
            self._consume(request, 0, chosen[0])
        else:
            chosen = self._schedule_several(request, hosts)
        # An alternate would be claimed without the rule of the group.
        has_rule = groups.has_hard_group(request.spec)
        alternates = CONF.scheduler.max_attempts - 1 if return_alternates and not has_rule else 0
        return self._get_alternate_hosts(
            [place.host for place in chosen], request.spec, hosts, len(chosen) - 1, alternates,
            request.candidates, request.version, [place.candidate for place in chosen],
        )

    def _hosts(self, request: Request) -> list[HostState]:
        """The hosts with candidates, each with a copy of its candidates, which filters reduce."""
        hosts = list(
            self._get_all_host_states(request.context, request.spec, request.summaries)
        )
        for host in hosts:
            host.allocation_candidates = copy.deepcopy(request.candidates[host.uuid])
        return hosts

    def _aim(self, request: Request, number: int) -> None:
        """Makes the request one for this instance: filters read its UUID."""
        request.spec.instance_uuid = request.instances[number]
        request.spec.obj_reset_changes(["instance_uuid"])

    def _consume(self, request: Request, number: int, place: Place) -> None:
        """Takes what an instance needs from the state of its host, for filters and weighers."""
        for group in request.spec.requested_resources:
            group.provider_uuids = place.candidate["mappings"][group.requester_id]
        self._consume_selected_host(
            place.host, request.spec, instance_uuid=request.instances[number]
        )

    def _schedule_several(self, request: Request, hosts: list[HostState]) -> Assignment:
        """Finds a place for one instance after the other, and claims all places at once."""
        room, first, options = Room(request.summaries), [], []
        try:
            for number in range(len(request.instances)):
                self._aim(request, number)
                hosts = self._get_sorted_hosts(request.spec, hosts, number)
                options.append(places.places(hosts))
                place = next((place for place in options[-1] if room.take(place)), None)
                if place is None:
                    # Raises NoValidHost.
                    self._ensure_sufficient_hosts(
                        request.context, [place.host for place in first], len(request.instances)
                    )
                first.append(place)
                self._consume(request, number, place)
            choices = [first, *places.variants(first, options, request.summaries)]
            chosen = self._claim(request, [choices])
        except Exception:
            self._forget(request, first)
            raise
        if chosen is not first:
            self._forget(request, first)
        return chosen

    @staticmethod
    def _forget(request: Request, assignment: Assignment) -> None:
        """Removes instances from the lists of hosts' instances, which later requests read."""
        for uuid, place in zip(request.instances, assignment):
            place.host.instances.pop(uuid, None)

    def _claim(self, request: Request, batches: list[list[Assignment]]) -> Assignment:
        """Claims one of the choices; returns it.

        :raises NoValidHost: if no choice was accepted.
        """
        choices = [choice for batch in batches for choice in batch]
        if not choices:
            # Raises NoValidHost.
            self._ensure_sufficient_hosts(request.context, [], len(request.instances))
        first = request.instances[0]
        ceilings = limits.ceilings(
            request.context, request.spec, first, claims.resource_classes(choices)
        )
        for _ in range(ATTEMPTS):
            group = groups.hard_group(request.context, request.spec, request.instances)
            claim = Claim(request.owner, request.instances, [], ceilings, group)
            try:
                chosen, claimed = self._claim_in_turn(request, claim, batches)
            except claims.Conflict as conflict:
                return self._claim_for_existing(request, claim, batches, conflict)
            if self._keeps_group(request, claim, chosen, claimed):
                return chosen
        raise exception.NoValidHost(reason="The server group has got new members again and again.")

    def _claim_in_turn(
        self, request: Request, claim: Claim, batches: Iterable[list[Assignment]]
    ) -> tuple[Assignment, claims.Claimed]:
        """Claims with one batch of choices after the other, until one is accepted.

        :raises NoValidHost: if none was.
        :raises Conflict: if the instances hold something already.
        """
        for batch in batches:
            try:
                claimed = self._claim_some(request, claim, batch)
            except claims.OverCeiling as refused:
                ceiling = claim.ceilings[refused.details["ceiling"]]
                raise exception.NoValidHost(reason=limits.reason(ceiling, refused.details))
            except (claims.NoRoom, claims.GroupBroken) as refused:
                LOG.info("None of %d choices can be claimed: %s", len(batch), refused)
            except claims.Failed as failed:
                LOG.error("The claim failed: %s", failed)
                raise exception.NoValidHost(reason="The claim of resources failed.")
            else:
                return batch[claimed.choice], claimed
        if len(request.instances) > 1:
            raise _Outdated
        raise exception.NoValidHost(reason=TAKEN)

    def _claim_some(
        self, request: Request, claim: Claim, choices: list[Assignment]
    ) -> claims.Claimed:
        """Claims one of these choices, or the first, if all are too many for the service.

        :raises NotOffered: also if one choice is too large.
        """
        for some in (choices, choices[:1]):
            try:
                return self._claims.claim(
                    request.context, dataclasses.replace(claim, choices=some)
                )
            except claims.TooLarge as refused:
                LOG.warning("A claim with %d choices is too large: %s", len(some), refused)
        raise claims.NotOffered

    def _keeps_group(
        self, request: Request, claim: Claim, chosen: Assignment, claimed: claims.Claimed
    ) -> bool:
        """Whether the claim keeps the rule of the group with the members that were added while it
        was made. If it does not, the claim is undone.

        A member that is claimed after this claim knows of these instances, but one that was
        claimed before it may have been added after its members were read.
        """
        group = claim.group and groups.hard_group(request.context, request.spec, request.instances)
        if not group or group.members <= claim.group.members:
            return True
        again = dataclasses.replace(
            claim, choices=[chosen], ceilings=[], group=group, generations=claimed.generations
        )
        try:
            self._claims.claim(request.context, again)
        except claims.Refused as refused:
            LOG.info("The server group has got members, and the claim is undone: %s", refused)
            self._cleanup_allocations(request.context, request.instances)
            return False
        except (claims.Failed, claims.NotOffered) as failed:
            LOG.warning("The rule of the server group is not checked again: %r", failed)
        return True

    def _claim_for_existing(
        self, request: Request, claim: Claim, batches: list[list[Assignment]], conflict: Exception
    ) -> Assignment:
        """Claims for an instance that holds something, as Nova's client of Placement does.

        If it holds one of the choices, the request has been claimed before, and its first answer
        was lost. Otherwise it is evacuated, and keeps what it holds, too.
        """
        first = request.instances[0]
        if len(request.instances) > 1:
            raise exception.AllocationUpdateFailed(consumer_uuid=first, error=str(conflict))
        held = self.placement_client.get_allocs_for_consumer(request.context, first)
        allocations = {
            provider: {"resources": held_of["resources"]}
            for provider, held_of in held["allocations"].items()
        }
        same = [
            choice for batch in batches for choice in batch if choice[0].allocations == allocations
        ]
        if same:
            batches = [same[:1]]
        elif allocations:
            apart = claim.group if claim.group and claim.group.most is not None else None
            claim = dataclasses.replace(
                claim, ceilings=[], group=apart, kept={first: allocations},
                generations={first: held["consumer_generation"]},
            )
        try:
            return self._claim_in_turn(request, claim, batches)[0]
        except claims.Conflict as conflict:
            raise exception.AllocationUpdateFailed(consumer_uuid=first, error=str(conflict))


@dataclasses.dataclass
class Request:
    """A request to the scheduler.

    :ivar candidates: Allocation candidates by UUID of the provider.
    :ivar summaries: Provider summaries of these candidates.
    :ivar version: The microversion of the candidates.
    """

    context: RequestContext
    spec: objects.RequestSpec
    instances: list[str]
    candidates: dict[str, list[dict[str, Any]]]
    summaries: dict[str, Any]
    version: str | None

    @property
    def owner(self) -> Owner:
        """The owner of the instances; old requests have no user."""
        has_user = "user_id" in self.spec and self.spec.user_id
        return Owner(self.spec.project_id, self.spec.user_id if has_user else self.context.user_id)
