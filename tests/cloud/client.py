"""What users and operators ask the cloud for, over the REST APIs."""

import threading
import time

from keystoneauth1 import adapter, exceptions, session
from keystoneauth1.identity import v3

import parts
from processes import Failed
from stand_ins import IMAGE

COMPUTE = '2.90'
PLACEMENT = '1.39'
# At most this long for one server to reach a state.
PATIENCE_S = 180
# Set once the run is to end: all threads then fail with their next request.
INTERRUPTED = threading.Event()


class Client:
    """A user of a project, the admin of `demo` for most scenarios. Sessions are per thread."""

    def __init__(self, url, trusted, project='demo', user='admin', password=parts.ADMIN_PASSWORD):
        self._auth = v3.Password(url, username=user, password=password, project_name=project,
                                 user_domain_id='default', project_domain_id='default')
        self._trusted = trusted
        self._local = threading.local()

    def request(self, service, method, path, json=None, accepted=(200, 201, 202, 204), **headers):
        """Returns the answer; fails with its text if its status is unexpected."""
        answer = self.ask(service, method, path, json, **headers)
        if answer.status_code not in accepted:
            raise Failed(f'{method} {service} {path}: {answer.status_code} {answer.text[:300]}')
        return answer

    def ask(self, service, method, path, json=None, **headers):
        if INTERRUPTED.is_set():
            raise Failed('interrupted')
        if not hasattr(self._local, 'session'):
            self._local.session = session.Session(self._auth, verify=self._trusted, timeout=120)
        to = adapter.Adapter(self._local.session, service_type=service, interface='public', connect_retries=3,
                             status_code_retries=3,
                             default_microversion={'compute': COMPUTE, 'placement': PLACEMENT}.get(service))
        try:
            return to.request(path, method, json=json, raise_exc=False, headers=headers)
        except exceptions.ClientException as error:
            raise Failed(f'{method} {service} {path}: {error}') from error

    def get(self, service, path):
        return self.request(service, 'GET', path).json()

    # Keystone.

    def create(self, what, **body):
        return self.request('identity', 'POST', f'/{what}s', {what: body}).json()[what]['id']

    def grant(self, project, user, role):
        roles = self.get('identity', f'/roles?name={role}')['roles']
        self.request('identity', 'PUT', f'/projects/{project}/users/{user}/roles/{roles[0]["id"]}')

    def project(self, name):
        """Returns the id of a project."""
        project, = self.get('identity', f'/projects?name={name}')['projects']
        return project['id']

    def register(self, type, url):
        """Adds a service with this URL to the catalog."""
        service = self.create('service', name=type, type=type)
        for interface in ('public', 'internal', 'admin'):
            self.create('endpoint', interface=interface, url=url, region_id=parts.REGION, service_id=service)

    # Nova.

    def flavor(self, name, vcpus, memory_mb=256, disk_gb=1, specs=None, project=None):
        """Creates a flavor, for one project only if one is named; `specs` are its extra specs."""
        body = {'name': name, 'id': name, 'vcpus': vcpus, 'ram': memory_mb, 'disk': disk_gb,
                'os-flavor-access:is_public': not project}
        # 409: it exists.
        self.request('compute', 'POST', '/flavors', {'flavor': body}, accepted=(200, 409))
        if specs:
            self.request('compute', 'POST', f'/flavors/{name}/os-extra_specs', {'extra_specs': specs})
        if project:
            self.request('compute', 'POST', f'/flavors/{name}/action', {'addTenantAccess': {'tenant': project}})

    def boot(self, name, flavor, hints=None, **more):
        """Sends the request for a server; returns its id and the id of the request."""
        body = {'name': name, 'flavorRef': flavor, 'imageRef': IMAGE, 'networks': 'none', **more}
        body = {'server': body, **({'os:scheduler_hints': hints} if hints else {})}
        answer = self.request('compute', 'POST', '/servers', body)
        return answer.json()['server']['id'], answer.headers['x-openstack-request-id']

    def act(self, server, action, arguments=None):
        self.request('compute', 'POST', f'/servers/{server}/action', {action: arguments})

    def delete(self, server):
        self.request('compute', 'DELETE', f'/servers/{server}', accepted=(204, 404))

    def server(self, server):
        """Returns the server, or None if it is gone."""
        answer = self.request('compute', 'GET', f'/servers/{server}', accepted=(200, 404))
        return answer.json()['server'] if answer.status_code == 200 else None

    def servers(self, query=''):
        """Returns all servers of all projects."""
        return self._pages('servers', f'all_tenants=1{query}')

    def _pages(self, kind, query=''):
        """Returns a whole list of Nova, which limits each answer."""
        found, marker = [], ''
        while page := self.get('compute', f'/{kind}/detail?limit=500&{query}{marker}')[kind.removeprefix('os-')]:
            found += page
            marker = f'&marker={page[-1]["id"]}'
        return found

    def until(self, server, *statuses, seconds=PATIENCE_S, holds=lambda found: True):
        """Waits until the server has one of these states and no task, and the condition holds; `None` waits
        until it is gone."""
        started = time.monotonic()
        while True:
            found = self.server(server)
            status = found and found['status']
            if status in statuses and not (found and found['OS-EXT-STS:task_state']) and holds(found):
                return found
            if status == 'ERROR':
                raise Failed(f'{server} is in ERROR: {found.get("fault", {}).get("message")}')
            if time.monotonic() - started > seconds:
                raise Failed(f'{server} is {status} after {seconds} s, not {statuses}: {self.last_action(server)}')
            time.sleep(0.5)

    def until_elsewhere(self, server, host, seconds=PATIENCE_S):
        """Waits until the server has left a host and has no task."""
        started = time.monotonic()
        while True:
            found = self.server(server)
            if found['OS-EXT-SRV-ATTR:host'] != host and not found['OS-EXT-STS:task_state']:
                return
            waited = time.monotonic() - started
            if found['status'] == 'ERROR' or waited > seconds:
                raise Failed(f'{server} is {found["status"]} on {host} after {waited:.0f} s: '
                             f'{self.last_action(server)}')
            time.sleep(0.5)

    def last_action(self, server):
        """Describes the last action of a server: its request, and the events that failed."""
        path = f'/servers/{server}/os-instance-actions'
        action = self.get('compute', path)['instanceActions'][0]
        events = self.get('compute', f'{path}/{action["request_id"]}')['instanceAction']['events']
        failed = [f'{event["event"]} on {event.get("host")}: {event.get("details")}' for event in events
                  if event['result'] != 'Success']
        return f'{action["action"]} ({action["request_id"]}, {action["message"]}): {"; ".join(failed)}'

    def zone(self, name, hosts):
        """Creates an aggregate of nova-computes that is an availability zone."""
        self.aggregate(name, hosts, availability_zone=name)

    def aggregate(self, name, hosts, **metadata):
        """Creates an aggregate of nova-computes; returns its id."""
        body = {'aggregate': {'name': name}}
        aggregate = self.request('compute', 'POST', '/os-aggregates', body).json()['aggregate']['id']
        action = f'/os-aggregates/{aggregate}/action'
        self.request('compute', 'POST', action, {'set_metadata': {'metadata': metadata}})
        for host in hosts:
            self.request('compute', 'POST', action, {'add_host': {'host': host}})
        return aggregate

    def delete_aggregate(self, aggregate):
        for host in self.get('compute', f'/os-aggregates/{aggregate}')['aggregate']['hosts']:
            self.request('compute', 'POST', f'/os-aggregates/{aggregate}/action', {'remove_host': {'host': host}})
        self.request('compute', 'DELETE', f'/os-aggregates/{aggregate}')

    def attempts(self, server, request):
        """Returns on how many nova-computes a boot was tried."""
        action = self.get('compute', f'/servers/{server}/os-instance-actions/{request}')['instanceAction']
        return sum(event['event'] == 'compute__do_build_and_run_instance' for event in action['events'])

    def services(self, binary='nova-compute'):
        return self.get('compute', f'/os-services?binary={binary}')['services']

    def set_service(self, id, **settings):
        self.request('compute', 'PUT', f'/os-services/{id}', settings)

    def hypervisors(self):
        return self._pages('os-hypervisors')

    def migrations(self):
        return self.get('compute', '/os-migrations')['migrations']

    # Placement.

    def providers(self):
        return self.get('placement', '/resource_providers')['resource_providers']

    def placement_inventories(self):
        return len(self.get('placement', '/resource_providers?resources=VCPU:1')['resource_providers'])

    def inventories(self, provider):
        return self.get('placement', f'/resource_providers/{provider["uuid"]}/inventories')['inventories']

    def mark(self, provider, trait, marked=True):
        """Adds a trait to a provider, or takes it away."""
        path = f'/resource_providers/{provider}/traits'
        body = self.get('placement', path)
        traits = set(body['traits']) - {trait} | ({trait} if marked else set())
        self.request('placement', 'PUT', path, body | {'traits': sorted(traits)})

    def allocations(self):
        """Returns all allocations: of each consumer the resources by the name of the provider."""
        found = {}
        for provider in self.providers():
            held = self.get('placement', f'/resource_providers/{provider["uuid"]}/allocations')['allocations']
            for consumer, allocation in held.items():
                found.setdefault(consumer, {})[provider['name']] = allocation['resources']
        return found
