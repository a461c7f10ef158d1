"""Commands for the openstack client: ``openstack placementd …``."""
