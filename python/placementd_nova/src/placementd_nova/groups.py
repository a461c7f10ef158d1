"""Server groups with a hard policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nova import exception, objects

if TYPE_CHECKING:
    from nova.context import RequestContext

# The largest number of members in a group of a claim.
MEMBERS_MAX = 1000
AFFINITY, ANTI_AFFINITY = "affinity", "anti-affinity"


@dataclass(frozen=True)
class HardGroup:
    """The members of a group, by UUID of the instance.

    :ivar most: How many members a host may have; None for all members on one host.
    """

    members: frozenset[str]
    most: int | None

    def body(self) -> dict[str, Any]:
        """The members of a claim's body."""
        members = sorted(self.members)
        if self.most is None:
            return {"together": [{"members": members}]}
        return {"apart": [{"members": members, "most": self.most}]}


def has_hard_group(spec: objects.RequestSpec) -> bool:
    """Whether the instances of a request belong to a group with a hard policy."""
    group = spec.instance_group
    return group is not None and group.policy in (AFFINITY, ANTI_AFFINITY)


def hard_group(
    context: RequestContext, spec: objects.RequestSpec, instances: list[str]
) -> HardGroup | None:
    """The hard group of a request, with the members that it has now.

    The conductor has read the members too, but another member may have been added since.
    """
    if not has_hard_group(spec):
        return None
    try:
        group = objects.InstanceGroup.get_by_instance_uuid(context, instances[0])
    except exception.InstanceGroupNotFound:
        # The group was deleted.
        return None
    members = frozenset(group.members) | set(instances)
    most = None
    if group.policy == ANTI_AFFINITY:
        most = min(group.rules.get("max_server_per_host", 1), MEMBERS_MAX)
    return HardGroup(members, most)
