"""A sample cloud, loaded through the REST API of all nodes."""

import concurrent.futures
import http.client
import itertools
import json
import threading
import urllib.parse

HEADERS = {'X-Auth-Token': 'admin', 'X-Roles': 'admin,service', 'Content-Type': 'application/json',
           'OpenStack-API-Version': 'placement 1.39'}
WRITERS = 8
CONSUMERS_OF_A_REQUEST = 50
AGGREGATES = 10
TRAITS = ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2', 'HW_CPU_X86_VMX', 'STORAGE_DISK_SSD', 'COMPUTE_NODE']
DEVICE = 'CUSTOM_PCI_10DE_1EB8'
# Names that are dangerous, long, or written from right to left. Pages with screenshots do not show
# them.
NAMES = ['<script>alert(1)</script>', '"><img src=//evil.example/x onerror=alert(1)>', "cmp-'&amp;\"<b>", '計算' * 90,
         'x' * 200, 'cmp-\u202emoc.elpmaxe', '../../backup?a=b#c']
NAMED = dict(enumerate(NAMES, 101))


class Cloud:
    def __init__(self, apis, hosts):
        self._apis = itertools.cycle(apis)
        self._own = threading.local()
        self._hosts = hosts

    def fill(self):
        self._ask('PUT', f'/resource_classes/{DEVICE}')
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as writers:
            # list() raises the errors of the writers here.
            list(writers.map(self._host, range(self._hosts)))
            first = range(0, self._hosts, CONSUMERS_OF_A_REQUEST)
            list(writers.map(self._consumers, first))

    def _ask(self, method, path, body=None):
        if not hasattr(self._own, 'connection'):
            address = urllib.parse.urlsplit(next(self._apis)).netloc
            self._own.connection = http.client.HTTPConnection(address, timeout=60)
        connection = self._own.connection
        connection.request(method, path, body and json.dumps(body), HEADERS)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f'{method} {path}: {answer.status} {text}')

    def _host(self, nth):
        root = uuid('a', nth)
        name = NAMED.get(nth, f'cmp-{nth:05}')
        own = {'VCPU': stock(32 + nth % 3 * 32, 4.0), 'MEMORY_MB': stock(262144, 1.0), 'DISK_GB': stock(4000, 1.0)}
        self._provider(root, None, name, own, TRAITS[:1 + nth % len(TRAITS)], [uuid('e', nth % AGGREGATES)])
        # Every tenth host has a NUMA node with two devices.
        if nth % 10 == 0:
            node = uuid('b', nth)
            self._provider(node, root, f'numa-{nth}', {'PCPU': stock(16, 1.0)}, ['HW_NUMA_ROOT'], [])
            for device in range(2):
                self._provider(uuid('d', 2 * nth + device), node, f'pci-{nth}-{device}', {DEVICE: stock(1, 1.0)}, [], [])

    def _provider(self, provider, parent, name, inventories, traits, aggregates):
        new = {'uuid': provider, 'name': name, 'parent_provider_uuid': parent}
        self._ask('POST', '/resource_providers', new)
        for what, value in [('inventories', inventories), ('traits', traits), ('aggregates', aggregates)]:
            generation = ['inventories', 'traits', 'aggregates'].index(what)
            if value or generation == 0:
                body = {'resource_provider_generation': generation, what: value}
                self._ask('PUT', f'/resource_providers/{provider}/{what}', body)

    def _consumers(self, first):
        """Claims two consumers of different sizes on every second host."""
        hosts = range(first, min(first + CONSUMERS_OF_A_REQUEST, self._hosts), 2)
        claims = {uuid('c', 2 * nth + at): self._claim(nth, at) for nth in hosts for at in range(2)}
        self._ask('POST', '/allocations', claims)

    @staticmethod
    def _claim(nth, at):
        resources = {'VCPU': 1 << (nth // 2 % 6), 'MEMORY_MB': 2048 * (1 + nth % 50), 'DISK_GB': 20}
        project = '<b>project</b>' if nth == 0 else f'project-{nth % 20}'
        return {'allocations': {uuid('a', nth): {'resources': resources}}, 'consumer_generation': None,
                'project_id': project, 'user_id': f'user-{at}', 'consumer_type': 'INSTANCE'}


def stock(total, ratio):
    return {'total': total, 'allocation_ratio': ratio}


def uuid(kind, nth):
    return f'{kind}0000000-0000-4000-8000-{nth:012x}'
