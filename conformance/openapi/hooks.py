"""Replaces names in generated cases by existing ones.

A case generated from a schema alone contains providers, classes and generations that do not exist,
and only gets 404 and 409. So most names are replaced by names of the sample before the case is sent.
The choice depends only on the names, so that a seed repeats a run.
"""

import itertools
import os
import re
import zlib

import schemathesis

from sample import AGGREGATES, CLASSES, CONSUMERS, PROVIDERS, QUERY, TRAITS, Sample

TOKEN = {'X-Auth-Token': 'admin', 'X-Roles': 'admin,service'}
UUID = re.compile(r'[0-9a-fA-F-]{36}')
NAME = re.compile(r'[A-Z0-9_]+')
GROUP = re.compile(r'(resources|required|member_of|in_tree)(.+)')
SUFFIXES = ['1', '2', '_A', '_B']

# Cases between two rebuilds of the sample, as cases delete parts of it.
REBUILD_CASES = 100

sent = itertools.count(1)
sample = Sample(os.environ['PLACEMENT_API'], TOKEN)


def draw(word, pool, keep=4):
    """Replaces a word deterministically by one of the pool; one in `keep` words is kept."""
    number = zlib.crc32(repr(word).encode('utf-8', 'replace'))
    return word if number % keep == 0 else pool[number // keep % len(pool)]


@schemathesis.hook
def before_call(context, case, kwargs):
    """Replaces names in the path, the query and the body."""
    if next(sent) % REBUILD_CASES == 0:
        sample.build()
    if isinstance(case.path_parameters, dict):
        case.path_parameters = {
            name: lead_path(name, case.operation.path, value)
            for name, value in case.path_parameters.items()}
    if isinstance(case.query, dict):
        case.query = lead_query(case.query)
        if case.operation.path == '/allocation_candidates':
            case.query = ask_for_something(case.query)
    if case.operation.path == '/placementd/v1/events' and isinstance(case.query, (dict, type(None))):
        # A following stream never ends.
        case.query = {**(case.query or {}), 'follow': 'false'}
    if isinstance(case.body, (dict, list)):
        uuid = (case.path_parameters or {}).get('uuid')
        consumer = (case.path_parameters or {}).get('consumer_uuid')
        case.body = Body(uuid, consumer).lead(case.body)


@schemathesis.hook
def after_call(context, case, response):
    """Records the operations that succeeded."""
    if 200 <= response.status_code < 300:
        with open(os.environ['PLACEMENT_SUCCEEDED'], 'a') as file:
            file.write(f'{case.operation.method.upper()} {case.operation.path}\n')


def lead_path(name, path, value):
    if not isinstance(value, str):
        return value
    if name == 'uuid' and UUID.fullmatch(value):
        return draw(value, PROVIDERS)
    if name == 'consumer_uuid' and UUID.fullmatch(value):
        return draw(value, CONSUMERS)
    if NAME.fullmatch(value):
        return draw(value, TRAITS if path.startswith('/traits') else CLASSES)
    return value


def lead_query(query):
    led = {}
    for key, value in query.items():
        name, suffix = key, ''
        if key not in QUERY and (group := GROUP.fullmatch(key)):
            name, suffix = group.group(1), draw(group.group(2), SUFFIXES)
        pool = QUERY.get(name)
        if pool and isinstance(value, list):
            value = [draw(one, pool) for one in value]
        elif pool:
            value = draw(value, pool)
        led[name + suffix] = value
    return led


def ask_for_something(query):
    """Adds resources to most candidate requests, as all requests without any are rejected alike."""
    number = zlib.crc32(repr(query).encode('utf-8', 'replace'))
    if number % 8 == 0 or any(key.startswith('resources') for key in query):
        return query
    suffixes = {''} | {key.removeprefix('required') for key in query if key.startswith('required_')}
    asked = {f'resources{suffix}': draw((number, suffix), QUERY['resources'][:5], keep=10 ** 9)
             for suffix in suffixes}
    return query | asked


class Body:
    """A request body for a provider or a consumer, whose generations it may contain."""

    def __init__(self, uuid, consumer):
        self._uuid = uuid
        self._consumer = consumer

    def lead(self, value, key=None):
        if isinstance(value, dict):
            uuid = key if isinstance(key, str) and UUID.fullmatch(key) else None
            inner = Body(uuid or self._uuid, uuid or self._consumer)
            led = {}
            for name, member in value.items():
                name = self._name(name, key)
                led[name] = inner.lead(member, name)
            return led
        if isinstance(value, list):
            return [self.lead(item, key) for item in value]
        return self._leaf(value, key)

    def _name(self, name, parent):
        if not isinstance(name, str):
            return name
        if UUID.fullmatch(name):
            # Keys of allocations and inventories are providers; keys elsewhere are consumers.
            return draw(name, PROVIDERS if parent in ('allocations', 'inventories') else CONSUMERS)
        if parent in ('resources', 'inventories') and NAME.fullmatch(name):
            return draw(name, CLASSES)
        return name

    def _leaf(self, value, key):
        if key == 'resource_provider_generation' and isinstance(value, int):
            return draw(value, [sample.generation(self._uuid) or 0], keep=3)
        if key == 'consumer_generation' and not isinstance(value, (str, bool)):
            return draw(value, [sample.consumer_generation(self._consumer)], keep=3)
        if not isinstance(value, str):
            # Mostly amounts that fit.
            small = isinstance(value, int) and not isinstance(value, bool) and value > 64
            return draw(value, [1, 2, 64], keep=4) if small else value
        if UUID.fullmatch(value):
            return draw(value, {'aggregates': AGGREGATES}.get(key, PROVIDERS))
        if key in ('resource_class', 'name') and NAME.fullmatch(value):
            return draw(value, CLASSES)
        if key == 'traits':
            return draw(value, TRAITS)
        return value
