"""Room of nodes that is reserved for one project with ordinary writes to Placement.

For each node, a consumer of the type RESERVATION holds the room, and a child provider has one token for each server
that fits into it. The private flavor of the project takes a token in place of VCPUs, memory and disk. It also takes
1 MB of the node, which the consumer leaves free: Nova skips a candidate that takes nothing from the compute node
itself."""

import dataclasses
import time
import uuid

import checks
import parts
from client import Client
from processes import Failed

# The size of a server.
VCPUS, MEMORY_MB, DISK_GB = 4, 256, 1
# What a server takes of its node in addition to the token.
OWN_MB = 1


@dataclasses.dataclass
class Place:
    """Room of a node for some servers."""

    node: str
    root: str
    servers: int
    # The provider of the tokens, and the consumer that holds the room.
    child: str
    consumer: str

    def room(self):
        return {'VCPU': self.servers * VCPUS, 'MEMORY_MB': self.servers * (MEMORY_MB - OWN_MB),
                'DISK_GB': self.servers * DISK_GB}


class Reservation:
    """The reserved room, and the user that it is for. Project, user and flavor have its name."""

    def __init__(self, cloud):
        id = str(uuid.uuid4())
        self.name, self._token = f'reserved-{id}', f'CUSTOM_RESERVATION_{id.replace("-", "_").upper()}'
        self._client, self._places, self._has_begun = cloud.client, [], False
        self._project, self.user = member(cloud, self.name)
        # The role `admin` may not send `POST /reshaper`.
        self._service = Client(cloud.keystone.url, cloud.placement.haproxy.trusted, 'service', 'nova',
                               parts.SERVICE_PASSWORD)

    def begin(self, nodes):
        """Reserves all of these nodes (names by UUID) but the room of one server each."""
        client = self._client
        client.flavor(self.name, VCPUS, MEMORY_MB, DISK_GB, project=self._project, specs={
            'resources:VCPU': '0', 'resources:MEMORY_MB': str(OWN_MB), 'resources:DISK_GB': '0',
            f'resources:{self._token}': '1'})
        client.request('placement', 'PUT', f'/resource_classes/{self._token}')
        for root, node in nodes.items():
            child = client.request('placement', 'POST', '/resource_providers', {
                'name': f'reserved_{node}', 'parent_provider_uuid': root}).json()['uuid']
            self._places.append(Place(node, root, fit(client, root) - 1, child, str(uuid.uuid4())))
        self._reshape({place.child: {self._token: {'total': place.servers, 'max_unit': 1}} for place in self._places},
                      {place.consumer: {place.root: {'resources': place.room()}} for place in self._places})
        self._has_begun = True

    def end(self):
        """Removes everything; no token may be in use."""
        if self._has_begun:
            self._reshape({place.child: {} for place in self._places}, {place.consumer: {} for place in self._places})
        paths = [f'/resource_providers/{place.child}' for place in self._places]
        for path in (*paths, f'/resource_classes/{self._token}'):
            self._client.request('placement', 'DELETE', path, accepted=(204, 404))
        self._client.request('compute', 'DELETE', f'/flavors/{self.name}', accepted=(202, 404))

    def _reshape(self, inventories, allocations):
        """Replaces the inventories of the children and what the consumers hold, in one step."""
        client, body = self._client, {'inventories': {}, 'allocations': {}}
        for child, own in inventories.items():
            generation = client.get('placement', f'/resource_providers/{child}')['generation']
            body['inventories'][child] = {'resource_provider_generation': generation, 'inventories': own}
        for consumer, own in allocations.items():
            # A consumer that does not exist has no generation.
            generation = client.get('placement', f'/allocations/{consumer}').get('consumer_generation')
            body['allocations'][consumer] = {
                'allocations': own, 'project_id': self._project, 'user_id': self._project,
                'consumer_generation': generation, 'consumer_type': 'RESERVATION'}
        self._service.request('placement', 'POST', '/reshaper', body)

    @property
    def servers(self):
        return sum(place.servers for place in self._places)

    @property
    def consumers(self):
        return {place.consumer for place in self._places}

    def used(self):
        """Returns how many tokens are used."""
        return sum(self._client.get('placement', f'/resource_providers/{place.child}/usages')['usages'][self._token]
                   for place in self._places)

    def until_used(self, count):
        """Waits until this many tokens are used: Nova gives them back after it has deleted a server."""
        until = time.monotonic() + checks.SETTLED_S
        while (used := self.used()) != count:
            if time.monotonic() > until:
                raise Failed(f'{used} tokens are used after {checks.SETTLED_S} s, not {count}')
            time.sleep(1)

    def is_intact(self, row):
        """Nova has changed neither the tokens nor what the consumers hold."""
        held = self._client.allocations()
        for place in self._places:
            inventories = self._client.inventories({'uuid': place.child})
            totals = {name: inventory['total'] for name, inventory in inventories.items()}
            row.must(totals == {self._token: place.servers}, f'the tokens of {place.node} are {totals}')
            row.must(held.get(place.consumer) == {place.node: place.room()},
                     f'the reservation of {place.node} holds {held.get(place.consumer)}, not {place.room()}')

    def has_tokens(self, row, boots):
        """Each server holds a token, its own memory, and nothing else."""
        held = self._client.allocations()
        expected = [{place.node: {'MEMORY_MB': OWN_MB}, f'reserved_{place.node}': {self._token: 1}}
                    for place in self._places]
        for boot in boots:
            row.must(held.get(boot.id) in expected, f'{boot.name} holds {held.get(boot.id)}')


def fit(client, root):
    """Returns how many servers fit on an empty node."""
    return client.inventories({'uuid': root})['VCPU']['total'] // VCPUS


def member(cloud, name):
    """Creates a project with a user who is no admin; returns the project and the client of the user."""
    client = cloud.client
    project = client.create('project', name=name, domain_id='default')
    user = client.create('user', name=name, password=parts.SERVICE_PASSWORD, domain_id='default')
    client.grant(project, user, 'member')
    return project, Client(cloud.keystone.url, cloud.placement.haproxy.trusted, name, name, parts.SERVICE_PASSWORD)
