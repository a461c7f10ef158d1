"""Nova's unified limits, as ceilings of a claim."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import nova.conf
import os_resource_classes as orc
from nova import context as nova_context
from nova import exception, objects
from nova.compute import vm_states
from nova.limit import utils as limit_utils
from oslo_limit import exception as limit_exception
from oslo_limit import limit

from placementd_nova.claims import CONSUMER_TYPE

if TYPE_CHECKING:
    from nova.context import RequestContext

CONF = nova.conf.CONF

SERVERS = "servers"
CLASS = "class:"


class Growth(enum.Enum):
    """What Nova checks limits for."""

    #: A new server.
    SERVERS = enum.auto()
    #: More resources for an existing server: a resize, or a server that was shelved.
    RESOURCES = enum.auto()
    #: Nothing: a migration or an evacuation, for which Nova does not check limits.
    NOTHING = enum.auto()


def growth(context: RequestContext, spec: objects.RequestSpec, instance: str) -> Growth:
    """What a request to the scheduler adds to its project."""
    try:
        cell = objects.InstanceMapping.get_by_instance_uuid(context, instance).cell_mapping
    except exception.InstanceMappingNotFound:
        cell = None
    # A new server has no cell until it has a host.
    if cell is None:
        return Growth.SERVERS
    with nova_context.target_cell(context, cell) as in_cell:
        found = objects.Instance.get_by_uuid(in_cell, instance, expected_attrs=["flavor"])
    was_shelved = found.vm_state == vm_states.SHELVED_OFFLOADED
    if was_shelved or found.flavor.flavorid != spec.flavor.flavorid:
        return Growth.RESOURCES
    return Growth.NOTHING


def ceilings(
    context: RequestContext, spec: objects.RequestSpec, instance: str, classes: Iterable[str]
) -> list[dict[str, Any]]:
    """The ceilings of a claim: the limits that Nova enforces for the project of a request.

    Resource classes count for consumers of all types, as Nova counts them. Servers count by the
    consumer type of the scheduler's claims, since the source of a migration is a consumer, too.

    :param classes: The resource classes that the claim asks for.
    """
    if not limit_utils.use_unified_limits():
        return []
    added = growth(context, spec, instance)
    if added == Growth.NOTHING:
        return []
    names = [CLASS + name for name in sorted(_counted(classes))]
    if added == Growth.SERVERS:
        names.append(SERVERS)
    # The enforcer calls this only to enforce.
    enforcer = limit.Enforcer(lambda *_: {})
    # All at once, since each limit by its name is one or two requests to Keystone.
    limits = dict(enforcer.get_registered_limits(None))
    limits |= dict(enforcer.get_project_limits(spec.project_id, None))
    amounts = [(name, limits.get(name, 0)) for name in names]
    return [
        _ceiling(spec.project_id, name, amount)
        for name, amount in amounts
        if _is_enforced(spec.project_id, name, amount)
    ]


def _counted(classes: Iterable[str]) -> set[str]:
    counted = set(classes)
    if CONF.workarounds.unified_limits_count_pcpu_as_vcpu:
        # Nova then has one limit for the sum of two classes, and a ceiling has one class.
        counted -= {orc.VCPU}
    return counted


def _is_enforced(project_id: str, name: str, amount: int) -> bool:
    """Whether Nova enforces a limit: negative ones never, and 0 also stands for a missing one."""
    if amount != 0:
        return amount > 0
    exceeded = limit_exception.OverLimitInfo(name, amount, 0, 1)
    return limit_utils.should_enforce(limit_exception.ProjectOverLimit(project_id, [exceeded]))


def _ceiling(project_id: str, name: str, amount: int) -> dict[str, Any]:
    if name == SERVERS:
        return {"projects": [project_id], "types": [CONSUMER_TYPE], "count": True, "limit": amount}
    return {"projects": [project_id], "class": name.removeprefix(CLASS), "limit": amount}


def reason(ceiling: dict[str, Any], refusal: dict[str, Any]) -> str:
    """The sentence for the fault of a server that is over a limit."""
    name = SERVERS if ceiling.get("count") else CLASS + ceiling["class"]
    return (
        f"Project {ceiling['projects'][0]} is over a limit for {name}: "
        f"{refusal.get('used')} of {refusal.get('limit')} are used, and "
        f"{refusal.get('requested')} more are requested."
    )
