"""Another cloud in the cluster under test: the suite runs in a partition during writes to the default one."""

import random
import threading
import time

import httpx

# Host headers: of the suite's requests, and of the default partition.
HOST = '127.0.0.1'
DEFAULT_HOST = 'neighbour.example'
NAME = 'suite'

UUIDS = [f'5c2a0000-0000-4000-8000-00000000000{digit}' for digit in range(10)]
NAMES = [f'neighbour {digit}' for digit in range(10)]
PATIENCE_S = 60


def create_partition(data_dir):
    """Creates the suite's partition, after all nodes have agreed to the feature."""
    socket = httpx.HTTPTransport(uds=f'{data_dir}/admin.sock')
    deadline = time.monotonic() + PATIENCE_S
    with httpx.Client(transport=socket, timeout=PATIENCE_S) as operator:
        while True:
            answer = operator.put('http://node/v1/partitions/default',
                                  json={'hosts': [DEFAULT_HOST]})
            if answer.status_code == 204:
                answer = operator.post('http://node/v1/partitions',
                                       json={'name': NAME, 'hosts': [HOST]})
            if answer.status_code == 204:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f'no partition: {answer.status_code} {answer.text}')
            time.sleep(0.2)


class Neighbour:
    """Sends random writes to the default partition; a context manager."""

    HEADERS = {
        'host': DEFAULT_HOST,
        'x-auth-token': 'admin',
        'x-roles': 'admin,service',
        'openstack-api-version': 'placement 1.39',
    }

    def __init__(self, nodes, seed):
        self._nodes = nodes
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.written = 0
        self.failed = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _write(self):
        with httpx.Client(timeout=60) as client:
            while not self._over.is_set():
                method, path, body = self._request()
                url = f'http://{self._random.choice(self._nodes.netlocs)}{path}'
                answer = client.request(method, url, headers=self.HEADERS, json=body)
                self.written += answer.is_success
                if answer.status_code >= 500:
                    self.failed.append(f'{method} {path}: {answer.status_code} {answer.text}')

    def _request(self):
        choice = self._random
        provider = choice.choice(UUIDS)
        inventories = {'VCPU': {'total': choice.randrange(1, 100)}}
        claim = {'allocations': {provider: {'resources': {'VCPU': 1}}}, 'project_id': 'p',
                 'user_id': 'u', 'consumer_generation': None, 'consumer_type': 'NEIGHBOUR'}
        return choice.choice([
            ('POST', '/resource_providers', {'uuid': provider, 'name': choice.choice(NAMES)}),
            ('PUT', f'/resource_providers/{provider}/inventories',
             {'resource_provider_generation': choice.randrange(3), 'inventories': inventories}),
            ('PUT', f'/allocations/{choice.choice(UUIDS)}', claim),
            ('DELETE', f'/allocations/{choice.choice(UUIDS)}', None),
            ('DELETE', f'/resource_providers/{provider}', None),
            ('PUT', f'/traits/CUSTOM_NEIGHBOUR_{choice.randrange(9)}', None),
            ('DELETE', f'/traits/CUSTOM_NEIGHBOUR_{choice.randrange(9)}', None),
            ('PUT', f'/resource_classes/CUSTOM_NEIGHBOUR_{choice.randrange(9)}', None),
        ])
