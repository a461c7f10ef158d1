"""The devices of some nova-computes, which are child providers in Placement.

This module is imported in the environments of Nova and of the client, so it imports neither.
"""

import json

# Two whole GPUs, and a network card of which Nova gives away the four virtual functions.
GPUS, FUNCTIONS = 2, 4
GPU = {'vendor_id': '10de', 'product_id': '20b0'}
CARD = {'vendor_id': '8086', 'product_id': '1572'}
FUNCTION = {'vendor_id': '8086', 'product_id': '154c'}
# Two cards with two virtual GPUs each.
VGPU_CARDS, VGPUS = ('vgpu-1', 'vgpu-2'), 2


def _device(ids, address, kind, parent=None):
    return {**ids, 'address': address, 'parent_addr': parent, 'dev_type': kind, 'status': 'available',
            'numa_node': 0, 'label': f'label_{ids["vendor_id"]}_{ids["product_id"]}'}


_PARENT = '0000:81:00.0'
# What the driver reports for each node.
PCI = [*(_device(GPU, f'0000:0{number}:00.0', 'type-PCI') for number in range(1, GPUS + 1)),
       _device(CARD, _PARENT, 'type-PF'),
       *(_device(FUNCTION, f'0000:81:0a.{number}', 'type-VF', _PARENT) for number in range(FUNCTIONS))]

# How flavors name the devices, and the resource classes that Nova derives from the numbers.
ALIASES = ''.join(f'alias = {json.dumps({"name": name, "device_type": kind, **ids})}\n'
                  for name, kind, ids in (('gpu', 'type-PCI', GPU), ('function', 'type-VF', FUNCTION)))
CLASSES = {name: f'CUSTOM_PCI_{ids["vendor_id"]}_{ids["product_id"]}'.upper()
           for name, ids in (('gpu', GPU), ('function', FUNCTION))}
# For the nova.conf of a nova-compute that has them. Nova frees the PCI devices of a deleted server
# that was resized to a node only with the next update of that node.
SETTINGS = (f'update_resources_interval = 20\n[pci]\nreport_in_placement = true\ndevice_spec = {json.dumps(GPU)}\n'
            f'device_spec = {json.dumps(FUNCTION)}\n')


def wanted(specs):
    """Returns the resources on child providers that the extra specs of a flavor want."""
    found = {spec.removeprefix('resources:'): int(value) for spec, value in specs.items()
             if spec.startswith('resources:')}
    for words in filter(None, specs.get('pci_passthrough:alias', '').split(',')):
        name, count = words.split(':')
        found[CLASSES[name]] = int(count)
    return found
