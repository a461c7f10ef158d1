"""Which hosts and candidates instances may get."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from nova.scheduler.host_manager import HostState

# The first hosts and the first candidates of each that a claim for one instance has.
HOSTS = 16
CANDIDATES = 2
# The largest number of choices of a claim for several instances.
VARIANTS = 8


@dataclass(frozen=True, eq=False)
class Place:
    """A host and one of its allocation candidates."""

    host: HostState
    candidate: dict[str, Any]

    @property
    def allocations(self) -> dict[str, Any]:
        """The resources by UUID of the provider."""
        return self.candidate["allocations"]


# A place for each instance.
Assignment: TypeAlias = "list[Place]"


class Room:
    """What is free, as the search for candidates saw it.

    :param summaries: Provider summaries of Placement.
    """

    def __init__(self, summaries: dict[str, Any]) -> None:
        self._free = {
            (provider, name): amounts["capacity"] - amounts["used"]
            for provider, summary in summaries.items()
            for name, amounts in summary["resources"].items()
        }

    def take(self, place: Place) -> bool:
        """Takes the resources of a place, if they are free."""
        asked = collections.Counter({
            (provider, name): amount
            for provider, allocation in place.allocations.items()
            for name, amount in allocation["resources"].items()
        })
        # The service judges what the summaries do not have.
        fits = all(self._free.get(key, amount) >= amount for key, amount in asked.items())
        if fits:
            for key in asked.keys() & self._free.keys():
                self._free[key] -= asked[key]
        return fits


def places(hosts: Iterable[HostState], most: int | None = None) -> list[Place]:
    """The places of sorted hosts, with at most so many candidates of each host."""
    return [
        Place(host, candidate)
        for host in hosts
        for candidate in host.allocation_candidates[:most]
    ]


def batches(hosts: Iterable[HostState]) -> Iterator[list[Assignment]]:
    """The choices of the claims for one instance, to be sent until one is accepted."""
    usable = [host for host in hosts if host.allocation_candidates]
    for start in range(0, len(usable), HOSTS):
        yield [[place] for place in places(usable[start : start + HOSTS], CANDIDATES)]


def variants(
    first: Assignment, options: list[list[Place]], summaries: dict[str, Any]
) -> Iterator[Assignment]:
    """Further assignments for several instances, in which no two share a host.

    The filters passed each place after the places before it in ``first`` were consumed. A host
    that is used once has at least the room that the filters saw, whatever the others use.

    :param options: The places of each instance in the order of their hosts' weights.
    """
    tried = [{place.host.uuid} for place in first]
    for _ in range(VARIANTS - 1):
        room, used, variant = Room(summaries), set(), []
        for its, before in zip(options, tried):
            place = next(
                (
                    place
                    for place in its
                    if place.host.uuid not in used | before and room.take(place)
                ),
                None,
            )
            if place is None:
                return
            used.add(place.host.uuid)
            variant.append(place)
        for place, before in zip(variant, tried):
            before.add(place.host.uuid)
        yield variant
