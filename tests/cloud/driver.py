"""nova-compute with many nodes and no hypervisor. Runs in the environment of Nova:

    python driver.py --config-file nova.conf

CLOUD_NODES is the number of nodes of this service, CLOUD_NODES_BEFORE that of the services before it.
"""

import json
import os
import sys
import types
import uuid

import devices
import os_traits
from nova.cmd import compute
from nova.virt import fake

# Nova keeps one node identity per service in a file, unless the name of the driver has this word.
MODULE = 'many_nodes_as_ironic_has'
NAMESPACE = uuid.UUID('c10d0000-0000-4000-8000-000000000000')
MEMORY_MB = 65536
DISK_GB = 1000


def node_name(number):
    return f'node-{number:04}'


def vcpus(number):
    """Returns 8 for every other node, and 16 for the rest."""
    return 16 if number % 2 else 8


class Nodes(fake.FakeDriver):
    """Nova's own fake driver, with several nodes and UUIDs that survive a restart."""

    memory_mb = MEMORY_MB
    local_gb = DISK_GB

    def init_host(self, host):
        before, count = (int(os.environ[name]) for name in ('CLOUD_NODES_BEFORE', 'CLOUD_NODES'))
        self._host = host
        self._numbers = {node_name(number): number for number in range(before, before + count)}
        self._set_nodes(list(self._numbers))

    def get_nodenames_by_uuid(self, refresh=False):
        return {node_uuid(name): name for name in self._nodes}

    def get_available_resource(self, nodename):
        found = super().get_available_resource(nodename)
        if found:
            found |= {'uuid': node_uuid(nodename), 'vcpus': vcpus(self._numbers[nodename]), 'vcpus_used': 0,
                      'memory_mb': MEMORY_MB, 'memory_mb_used': 0, 'local_gb': DISK_GB, 'local_gb_used': 0}
        return found

    def post_live_migration_at_source(self, context, instance, network_info):
        # The fake driver would keep the server, which then could not be evacuated to this host.
        self.destroy(context, instance, network_info)

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        inventory = provider_tree.data(nodename).inventory
        inventory['VCPU']['total'] = inventory['VCPU']['max_unit'] = vcpus(self._numbers[nodename])
        provider_tree.update_inventory(nodename, inventory)


class NodesWithDevices(Nodes):
    """Nodes that report PCI devices and, as the libvirt driver does, a child provider for each card of
    virtual GPUs."""

    def get_available_resource(self, nodename):
        found = super().get_available_resource(nodename)
        return found and found | {'pci_passthrough_devices': json.dumps(devices.PCI)}

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        super().update_provider_tree(provider_tree, nodename, allocations)
        for card in devices.VGPU_CARDS:
            child = f'{nodename}_{card}'
            if not provider_tree.exists(child):
                provider_tree.new_child(child, nodename)
            provider_tree.update_inventory(child, {'VGPU': {
                'total': devices.VGPUS, 'max_unit': devices.VGPUS, 'min_unit': 1, 'step_size': 1, 'reserved': 0,
                'allocation_ratio': 1.0}})
            provider_tree.add_traits(child, os_traits.OWNER_NOVA)


def node_uuid(name):
    return str(uuid.uuid5(NAMESPACE, name))


if __name__ == '__main__':
    sys.modules[f'nova.virt.{MODULE}'] = module = types.ModuleType(f'nova.virt.{MODULE}')
    module.Nodes, module.NodesWithDevices = Nodes, NodesWithDevices
    compute.main()
