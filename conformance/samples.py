"""Sample data for files of the suite, created through the REST API.

Names, amounts, traits and environment variables are those that the suite expects; upstream writes
them directly into its database.
"""

import os
import uuid


class Provider:
    """A created provider, with methods for further steps."""

    def __init__(self, rest, name, parent=None, uuid_=None):
        self._rest = rest
        self.uuid = uuid_ or str(uuid.uuid4())
        self._path = f'/resource_providers/{self.uuid}'
        body = {'name': name, 'uuid': self.uuid}
        if parent:
            body['parent_provider_uuid'] = parent.uuid
        rest.post('/resource_providers', body)

    def known_as(self, *variables):
        """Sets environment variables to the provider's uuid."""
        for variable in variables:
            os.environ[variable] = self.uuid
        return self

    def in_aggregates(self, *aggregates):
        # Before 1.19 this does not change the provider's generation, like upstream's samples.
        self._rest.put(f'{self._path}/aggregates', list(aggregates), version='1.18')
        return self

    def traits(self, *names):
        for name in names:
            if name.startswith('CUSTOM_'):
                self._rest.put(f'/traits/{name}')
        generation = self._rest.get(self._path)['generation']
        self._rest.put(f'{self._path}/traits',
                       {'traits': list(names), 'resource_provider_generation': generation})
        return self

    def has(self, **totals):
        """Adds inventories that one allocation may use completely, with nothing reserved."""
        for name, total in totals.items():
            self.inventory(name, total)
        return self

    def inventory(self, name, total, **fields):
        """Adds one inventory with a separate request, which increments the generation."""
        if name.startswith('CUSTOM_'):
            self._rest.put(f'/resource_classes/{name}')
        body = {'resource_class': name, 'total': total, 'max_unit': total} | fields
        self._rest.post(f'{self._path}/inventories', body)
        return self

    def used_by(self, project, user, **amounts):
        """Allocates the amounts for a new consumer without a type; returns its uuid."""
        consumer = str(uuid.uuid4())
        self._rest.put(f'/allocations/{consumer}',
                       {'allocations': {self.uuid: {'resources': amounts}},
                        'project_id': project, 'user_id': user},
                       version='1.27')
        return consumer


def aggregates(*variables):
    """Creates aggregate uuids and sets an environment variable to each."""
    for variable in variables:
        os.environ[variable] = str(uuid.uuid4())
    return [os.environ[variable] for variable in variables]


def allocations(rest):
    """One provider with VCPU and DISK_GB, used by three consumers of two users."""
    env = os.environ
    env['ALT_USER_ID'] = str(uuid.uuid4())
    env['ALT_RP_UUID'] = str(uuid.uuid4())
    env['ALT_RP_NAME'] = str(uuid.uuid4())
    provider = Provider(rest, env['RP_NAME'], uuid_=env['RP_UUID'])
    provider.inventory('DISK_GB', 2048, step_size=10, min_unit=10, max_unit=1000)
    provider.inventory('VCPU', 10)
    project, user = env['PROJECT_ID'], env['USER_ID']
    env['CONSUMER_0'] = provider.used_by(project, user, DISK_GB=1000)
    env['CONSUMER_ID'] = provider.used_by(project, user, VCPU=6)
    env['ALT_CONSUMER_ID'] = provider.used_by(project, env['ALT_USER_ID'], DISK_GB=20, VCPU=1)


def shared_storage(rest):
    """Two hosts and two shared storages in one aggregate; each host has two NUMA nodes with a PF."""
    [aggregate] = aggregates('AGG_UUID')
    hosts, storages = (
        [Provider(rest, name).known_as(f'{name.upper()}_UUID').in_aggregates(aggregate)
         for name in names]
        for names in (('cn1', 'cn2'), ('ss', 'ss2')))
    numas = [Provider(rest, f'numa{host}_{numa}', hosts[host - 1]).known_as(f'NUMA{host}_{numa}_UUID')
             for host in (1, 2) for numa in (1, 2)]
    pfs = [Provider(rest, f'pf{host}_{numa}', numas[2 * host + numa - 3]).known_as(
               f'PF{host}_{numa}_UUID')
           for host in (1, 2) for numa in (1, 2)]
    for host in hosts:
        host.inventory('VCPU', 24, allocation_ratio=16.0)
        host.inventory('MEMORY_MB', 128 * 1024, allocation_ratio=1.5)
    hosts[0].traits('HW_CPU_X86_SSE', 'HW_CPU_X86_SSE2')
    hosts[1].inventory('DISK_GB', 2000, reserved=100)
    for storage in storages:
        storage.inventory('DISK_GB', 2000, reserved=100).traits('MISC_SHARES_VIA_AGGREGATE')
    for pf in pfs:
        pf.has(SRIOV_NET_VF=8)


def numa_aggregate(rest):
    """Hosts whose processors are in NUMA nodes; one storage shared with the hosts, one with a
    single NUMA node."""
    a, b, c = aggregates('AGGA_UUID', 'AGGB_UUID', 'AGGC_UUID')
    cn1 = Provider(rest, 'cn1').known_as('CN1_UUID').in_aggregates(a)
    cn2 = Provider(rest, 'cn2').known_as('CN2_UUID').in_aggregates(a, b)
    ss1 = Provider(rest, 'ss1').known_as('SS1_UUID').in_aggregates(a)
    ss2 = Provider(rest, 'ss2').known_as('SS2_UUID').in_aggregates(c)
    for host, parent in ((1, cn1), (2, cn2)):
        for numa in (1, 2):
            node = Provider(rest, f'numa{host}_{numa}', parent).known_as(f'NUMA{host}_{numa}_UUID')
            node.inventory('VCPU', 24, allocation_ratio=16.0)
            if (host, numa) == (1, 1):
                node.in_aggregates(c)
    for storage in (ss1, ss2):
        storage.inventory('DISK_GB', 2000, reserved=100).traits('MISC_SHARES_VIA_AGGREGATE')


def numa_network(rest, parents=(None, None)):
    """A host of NUMA nodes with FPGAs, a GPU and network agents; a flat host with three NICs; a
    storage shared by both. `parents` are the parents of the two hosts."""
    [aggregate] = aggregates('AGGA_UUID')
    hosts = [Provider(rest, f'cn{number}', parent) for number, parent in zip((1, 2), parents)]
    ss1 = Provider(rest, 'ss1').known_as('SS1_UUID').in_aggregates(aggregate)
    ss1.traits('MISC_SHARES_VIA_AGGREGATE').has(DISK_GB=2000)
    numa_host(rest, hosts[0].known_as('CN1_UUID').in_aggregates(aggregate))
    nic_host(rest, hosts[1].known_as('CN2_UUID').in_aggregates(aggregate))


def numa_host(rest, host):
    host.traits('COMPUTE_VOLUME_MULTI_ATTACH')
    numa0 = Provider(rest, 'numa0', host).known_as('NUMA0_UUID').traits('HW_NUMA_ROOT')
    numa0.has(VCPU=4).inventory('MEMORY_MB', 2048, min_unit=512, step_size=256)
    numa1 = Provider(rest, 'numa1', host).known_as('NUMA1_UUID')
    numa1.traits('HW_NUMA_ROOT', 'CUSTOM_FOO')
    numa1.has(VCPU=4).inventory('MEMORY_MB', 2048, min_unit=256, max_unit=1024)
    numa0.used_by('numafx-project', 'numafx-user', VCPU=2)
    Provider(rest, 'fpga0', numa0).known_as('FPGA0_UUID').has(FPGA=1)
    Provider(rest, 'pgpu0', numa0).known_as('PGPU0_UUID').has(VGPU=8)
    for number in (0, 1):
        Provider(rest, f'fpga1_{number}', numa1).known_as(f'FPGA1_{number}_UUID').has(FPGA=1)
    sriov = Provider(rest, 'sriov_agent', host).known_as('SRIOV_AGENT_UUID')
    sriov.traits('CUSTOM_VNIC_TYPE_DIRECT')
    for number in (1, 2):
        device = Provider(rest, f'esn{number}', sriov).known_as(f'ESN{number}_UUID')
        device.traits(f'CUSTOM_PHYSNET{number}').has(NET_BW_EGR_KILOBIT_PER_SEC=10000 * number)
    ovs = Provider(rest, 'ovs_agent', host).known_as('OVS_AGENT_UUID')
    ovs.traits('CUSTOM_VNIC_TYPE_NORMAL')
    bridge = Provider(rest, 'br_int', ovs).known_as('BR_INT_UUID')
    bridge.traits('CUSTOM_PHYSNET0').has(NET_BW_EGR_KILOBIT_PER_SEC=1000)


def nic_host(rest, host):
    host.has(VCPU=8)
    host.used_by('numafx-project', 'numafx-user', VCPU=3)
    host.inventory('MEMORY_MB', 2048, min_unit=1024, step_size=128).has(DISK_GB=1000)
    host.traits('CUSTOM_FOO')
    # For each NIC: the physical networks of its functions, and the number of VFs per function.
    for number, networks, functions in ((1, (1, 2), 4), (2, (1, 2, 1, 2), 2), (3, (1,), 8)):
        nic = Provider(rest, f'nic{number}', host).known_as(f'NIC{number}_UUID')
        nic.traits('CUSTOM_HW_NIC_ROOT')
        for place, network in enumerate(networks, 1):
            pf = Provider(rest, f'pf{number}_{place}', nic).known_as(f'PF{number}_{place}_UUID')
            pf.traits(f'CUSTOM_PHYSNET{network}').has(CUSTOM_VF=functions)


def deep_numa_network(rest):
    """Like numa_network, with a parent for each host and one grandparent."""
    grandparent = Provider(rest, 'gp1')
    numa_network(rest, [Provider(rest, name, grandparent) for name in ('p1', 'p2')])


def non_shared_storage(rest):
    """Three hosts with local disks, and three empty aggregates."""
    aggregates('AGGA_UUID', 'AGGB_UUID', 'AGGC_UUID')
    for number in (1, 2, 3):
        host = Provider(rest, f'cn{number}').known_as(f'CN{number}_UUID')
        host.has(VCPU=24, MEMORY_MB=128 * 1024, DISK_GB=2000)


def granular(rest):
    """Three hosts, two shared disks and a shared network, across three aggregates."""
    a, b, c = aggregates('AGGA', 'AGGB', 'AGGC')
    left = Provider(rest, 'cn_left').known_as('CN_LEFT').in_aggregates(a)
    left.has(VCPU=8, MEMORY_MB=4096, DISK_GB=500, VGPU=8, SRIOV_NET_VF=8, CUSTOM_NET_MBPS=4000)
    left.traits('HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2', 'HW_GPU_API_DXVA', 'HW_NIC_DCB_PFC',
                'CUSTOM_FOO')
    middle = Provider(rest, 'cn_middle').known_as('CN_MIDDLE').in_aggregates(a, b)
    middle.has(VCPU=8, MEMORY_MB=4096, SRIOV_NET_VF=8, CUSTOM_NET_MBPS=4000)
    middle.traits('HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2', 'HW_CPU_X86_SSE', 'HW_NIC_ACCEL_TLS')
    right = Provider(rest, 'cn_right').known_as('CN_RIGHT').in_aggregates(b, c)
    right.has(VCPU=8, MEMORY_MB=4096, DISK_GB=500).inventory('VGPU', 8, max_unit=2)
    right.traits('HW_CPU_X86_MMX', 'HW_GPU_API_DXVA', 'CUSTOM_DISK_SSD')
    disk_1 = Provider(rest, 'shr_disk_1').known_as('SHR_DISK_1').in_aggregates(a)
    disk_1.has(DISK_GB=1000).traits('MISC_SHARES_VIA_AGGREGATE', 'CUSTOM_DISK_SSD')
    disk_2 = Provider(rest, 'shr_disk_2').known_as('SHR_DISK_2').in_aggregates(a, b)
    disk_2.has(DISK_GB=1000).traits('MISC_SHARES_VIA_AGGREGATE')
    network = Provider(rest, 'shr_net').known_as('SHR_NET').in_aggregates(c)
    network.has(SRIOV_NET_VF=16, CUSTOM_NET_MBPS=40000).traits('MISC_SHARES_VIA_AGGREGATE')


def neutron_qos_multisegment(rest):
    """Four hosts with an OVS and an SR-IOV agent each; the last reaches two network segments."""
    segments = (('OTHER',), ('MSN_S1',), ('MSN_S2',), ('MSN_S1', 'MSN_S2'))
    for number, networks in enumerate(segments):
        # The host on two segments has little bandwidth on each.
        bridge, function = (5000, 10000) if len(networks) == 1 else (1000, 1000)
        name = f'compute{number}'
        host = Provider(rest, name).known_as(name)
        host.has(VCPU=8, MEMORY_MB=4096, DISK_GB=500)
        ovs = Provider(rest, f'{name}:Open vSwitch agent', host).known_as(f'{name}:ovs_agent')
        ovs.has(NET_PACKET_RATE_KILOPACKET_PER_SEC=1000).traits('CUSTOM_VNIC_TYPE_NORMAL')
        for place, network in enumerate(networks):
            suffix = '' if place == 0 else str(place + 1)
            device = Provider(rest, f'{name}:Open vSwitch agent:br-ex{suffix}', ovs)
            device.known_as(f'{name}:br_ex{suffix}')
            network_device(device, bridge, network, 'CUSTOM_VNIC_TYPE_NORMAL')
        direct = ('CUSTOM_VNIC_TYPE_DIRECT', 'CUSTOM_VNIC_TYPE_DIRECT_PHYSICAL',
                  'CUSTOM_VNIC_TYPE_MACVTAP')
        sriov = Provider(rest, f'{name}:NIC Switch agent', host).known_as(f'{name}:sriov_agent')
        sriov.traits(*direct)
        for place, network in enumerate(networks):
            device = Provider(rest, f'{name}:NIC Switch agent:enp129s0f{place}', sriov)
            network_device(device.known_as(f'{name}:pf{place}'), function, network, *direct)


def network_device(device, bandwidth, network, *traits):
    device.has(NET_BW_EGR_KILOBIT_PER_SEC=bandwidth, NET_BW_IGR_KILOBIT_PER_SEC=bandwidth)
    device.traits(*traits, f'CUSTOM_PHYSNET_{network}')
