"""Sample data of the cluster, and the values that cases use."""

import requests

PROVIDERS = [f'00000000-0000-4000-8000-00000000000{nth}' for nth in range(1, 9)]
CONSUMERS = [f'00000000-0000-4000-9000-00000000000{nth}' for nth in range(1, 5)]
AGGREGATES = [f'00000000-0000-4000-a000-00000000000{nth}' for nth in range(1, 3)]
CLASSES = ['VCPU', 'MEMORY_MB', 'DISK_GB', 'PCI_DEVICE', 'CUSTOM_GOLD', 'CUSTOM_NONE']
TRAITS = ['HW_CPU_X86_AVX2', 'MISC_SHARES_VIA_AGGREGATE', 'CUSTOM_FAST', 'CUSTOM_NONE']

# Values of query parameters: valid in some version, and a few invalid ones.
QUERY = {
    'resources': ['VCPU:1', 'VCPU:1,MEMORY_MB:64', 'DISK_GB:10', 'PCI_DEVICE:1', 'CUSTOM_GOLD:1',
                  'VCPU:99999', 'NOPE:1', 'VCPU:0', 'VCPU:9223372036854775808'],
    'required': ['HW_CPU_X86_AVX2', '!CUSTOM_FAST', 'in:CUSTOM_FAST,HW_CPU_X86_AVX2',
                 'CUSTOM_FAST,!CUSTOM_FAST', 'NOPE', ''],
    'member_of': [AGGREGATES[0], f'in:{",".join(AGGREGATES)}', f'!{AGGREGATES[1]}',
                  f'!in:{AGGREGATES[1]}', 'in:', 'no-one'],
    'in_tree': PROVIDERS,
    'uuid': PROVIDERS,
    'root_required': ['HW_CPU_X86_AVX2', '!CUSTOM_FAST', 'NOPE'],
    'same_subtree': ['_A,_B', '1,2', '_A', ''],
    'group_policy': ['none', 'isolate'],
    'limit': ['1', '2', '100', '0', 'x'],
    'name': ['host-1', 'in:CUSTOM_FAST,HW_CPU_X86_AVX2', 'startswith:CUSTOM_', 'CUSTOM_FAST'],
    'associated': ['true', 'false', 'True', 'maybe'],
    'project_id': ['project-1', 'project-2'],
    'user_id': ['user-1', 'user-2'],
    'consumer_type': ['INSTANCE', 'MIGRATION', 'all', 'unknown', 'nope'],
}


class Sample:
    """Creates the sample through the REST API, and reads generations."""

    def __init__(self, api, headers):
        self._api = api
        self._session = requests.Session()
        self._session.headers.update(headers)
        self._session.headers['OpenStack-API-Version'] = 'placement 1.39'

    def build(self):
        """Creates missing data, including data that cases have deleted: hosts with a child each, shared
        storage, two consumers."""
        self._put('/resource_classes/CUSTOM_GOLD')
        self._put('/traits/CUSTOM_FAST')
        for nth, uuid in enumerate(PROVIDERS):
            self._make_provider(nth, uuid)
        for nth, consumer in enumerate(CONSUMERS[:2]):
            self._call('PUT', f'/allocations/{consumer}', {
                'allocations': {PROVIDERS[nth]: {'resources': {'VCPU': 1, 'MEMORY_MB': 64}}},
                'project_id': 'project-1', 'user_id': f'user-{nth + 1}',
                'consumer_generation': None, 'consumer_type': 'INSTANCE'})

    def generation(self, uuid):
        """A provider's generation, or None if there is no such provider."""
        response = self._session.get(f'{self._api}/resource_providers/{uuid}', timeout=30)
        return response.json()['generation'] if response.status_code == 200 else None

    def consumer_generation(self, uuid):
        """A consumer's generation; None if it has no allocations."""
        response = self._session.get(f'{self._api}/allocations/{uuid}', timeout=30)
        return response.json().get('consumer_generation') if response.status_code == 200 else None

    def _make_provider(self, nth, uuid):
        body = {'name': f'host-{nth + 1}', 'uuid': uuid}
        if 4 <= nth < 7:
            body['parent_provider_uuid'] = PROVIDERS[nth - 4]
        self._call('POST', '/resource_providers', body)
        names = {True: ['PCI_DEVICE', 'CUSTOM_GOLD'], False: ['VCPU', 'MEMORY_MB']}[nth >= 4]
        traits = ['HW_CPU_X86_AVX2'] if nth % 2 else ['CUSTOM_FAST']
        if nth == 7:
            names, traits = ['DISK_GB'], ['MISC_SHARES_VIA_AGGREGATE']
        path = f'/resource_providers/{uuid}'
        self._call('PUT', f'{path}/inventories', {
            'resource_provider_generation': self.generation(uuid),
            'inventories': {name: {'total': 4096} for name in names}})
        self._call('PUT', f'{path}/traits', {
            'resource_provider_generation': self.generation(uuid), 'traits': traits})
        self._call('PUT', f'{path}/aggregates', {
            'resource_provider_generation': self.generation(uuid), 'aggregates': AGGREGATES[:1]})

    def _put(self, path):
        self._call('PUT', path, None)

    def _call(self, method, path, body):
        response = self._session.request(method, self._api + path, json=body, timeout=30)
        # 409: it exists already.
        if response.status_code >= 400 and response.status_code != 409:
            raise RuntimeError(f'{method} {path}: {response.status_code} {response.text}')
