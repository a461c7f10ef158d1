"""Claims of placementd for Nova's scheduler, and commands for the openstack client."""
