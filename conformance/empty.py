"""Deletes all data through the API, so that each file of the suite starts with an empty cluster."""

from cases import Session

SCRATCH = '00000000-5c2a-4c00-8000-000000000000'


class NotEmpty(Exception):
    """Data remains that the API cannot delete; only a new cluster helps."""


def empty(rest):
    """Deletes allocations, consumers without any, providers, custom classes and custom traits."""
    providers = rest.get('/resource_providers')['resource_providers']
    release(rest, providers)
    delete_trees(rest, providers)
    forget_consumers(rest)
    for name in custom_classes(rest):
        rest.delete(f'/resource_classes/{name}')
    for name in custom_traits(rest):
        rest.delete(f'/traits/{name}')
    check(rest)


def release(rest, providers):
    """Deletes the allocations of every consumer."""
    consumers = set()
    for provider in providers:
        consumers.update(
            rest.get(f'/resource_providers/{provider["uuid"]}/allocations')['allocations'])
    Session.consumers.update(consumers)
    # Sorted, here and below, as the iteration order of sets differs between processes.
    for consumer in sorted(consumers):
        rest.delete(f'/allocations/{consumer}')


def delete_trees(rest, providers):
    """Deletes providers, children before their parents."""
    parents = {provider['uuid']: provider['parent_provider_uuid'] for provider in providers}
    while parents:
        leaves = set(parents) - set(parents.values())
        for uuid in sorted(leaves):
            rest.delete(f'/resource_providers/{uuid}')
            del parents[uuid]


def forget_consumers(rest):
    """Removes the records of consumers that a failed or an empty write left behind.

    Such a record cannot be listed, but has a generation. It is deleted with its last allocation, so
    every consumer of the last file gets an allocation and loses it. Microversion 1.27 requires no
    generations.
    """
    if not Session.consumers:
        return
    rest.post('/resource_providers', {'name': 'scratch', 'uuid': SCRATCH})
    rest.post(f'/resource_providers/{SCRATCH}/inventories',
              {'resource_class': 'VCPU', 'total': len(Session.consumers)})
    owner = {'project_id': 'scratch', 'user_id': 'scratch'}
    one = {SCRATCH: {'resources': {'VCPU': 1}}}
    for allocations in (one, {}):
        rest.post('/allocations',
                  {consumer: owner | {'allocations': allocations}
                   for consumer in sorted(Session.consumers)},
                  version='1.27')
    rest.delete(f'/resource_providers/{SCRATCH}')
    Session.consumers.clear()


def custom_classes(rest):
    names = [found['name'] for found in rest.get('/resource_classes')['resource_classes']]
    return [name for name in names if name.startswith('CUSTOM_')]


def custom_traits(rest):
    return rest.get('/traits?name=startswith:CUSTOM_')['traits']


def check(rest):
    left = [rest.get('/resource_providers')['resource_providers'],
            custom_classes(rest), custom_traits(rest)]
    if any(left):
        raise NotEmpty(f'remaining: {left}')
