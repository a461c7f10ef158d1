"""A keystoneauth1 adapter for placementd, an OpenStack Placement service on several nodes."""

from placementd_client.adapter import OutcomeUnknown, PlacementAdapter
from placementd_client.events import Events

__all__ = ["Events", "OutcomeUnknown", "PlacementAdapter"]
