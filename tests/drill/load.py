"""Requests that services send to Placement all the time, through the balancer and with Nova's
retries."""

import logging
import os
import random
import threading
import time
import uuid

from keystoneauth1 import loading
from oslo_config import cfg

import content

HEADERS = {'OpenStack-API-Version': 'placement 1.39'}
CLIENTS = 4
# keystoneauth logs each request that it retries.
logging.getLogger('keystoneauth').addHandler(logging.NullHandler())
# Pause between requests, so that the load leaves room for the measured work.
PAUSE_S = 0.1
# Share of the claims that is released.
RELEASED = 0.25


class Load:
    """Clients that claim, read their claims and release some, until they are stopped.

    `section` is the `[placement]` section of their configuration. `acknowledged` maps each consumer to its hosts: one host, or
    none after a release. A consumer whose last write failed is not in it.
    """

    def __init__(self, section, directory, hosts):
        self.acknowledged = {}
        self.failures = []
        self._hosts = hosts
        self._file = os.path.join(directory, 'nova.conf')
        with open(self._file, 'w') as file:
            file.write(section)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = []

    def start(self):
        self.answers = 0
        self.longest_gap_s = self.slowest_s = 0.0
        self._last = time.monotonic()
        self._stopping.clear()
        self._threads = [threading.Thread(target=self._client, daemon=True) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self.longest_gap_s = max(self.longest_gap_s, time.monotonic() - self._last)

    def look(self):
        """Reads everything that was acknowledged; records each difference as a failure."""
        placement = adapter(self._file)
        for consumer in list(self.acknowledged):
            self._look_at(placement, consumer)

    def _client(self):
        placement = adapter(self._file)
        own = []
        while not self._stopping.wait(PAUSE_S):
            own.append(self._claim(placement))
            self._look_at(placement, random.choice(own))
            if random.random() < RELEASED:
                self._release(placement, own.pop(random.randrange(len(own))))

    def _claim(self, placement):
        consumer, host = str(uuid.uuid4()), content.host(random.randrange(self._hosts))
        body = {'allocations': {host: {'resources': {'VCPU': 1, 'MEMORY_MB': 64}}}, 'project_id': 'load',
                'user_id': 'load', 'consumer_generation': None, 'consumer_type': 'INSTANCE'}
        if self._ask(placement, 'PUT', consumer, 204, body):
            self.acknowledged[consumer] = {host}
        return consumer

    def _release(self, placement, consumer):
        if self.acknowledged.pop(consumer, None) and self._ask(placement, 'DELETE', consumer, 204):
            self.acknowledged[consumer] = set()

    def _look_at(self, placement, consumer):
        hosts = self.acknowledged.get(consumer)
        answer = self._ask(placement, 'GET', consumer, 200) if hosts is not None else None
        if answer and set(answer.json()['allocations']) != hosts:
            self.failures.append(f'{consumer} is on {hosts}, and the answer is {answer.text}')

    def _ask(self, placement, method, consumer, expected, body=None):
        """Returns the answer, or None if its status is unexpected; like Nova, retries a conflict up
        to three times."""
        path = f'/allocations/{consumer}'
        for _ in range(3):
            started = time.monotonic()
            try:
                answer = placement.request(path, method, json=body, headers=HEADERS, raise_exc=False)
            except Exception as error:  # A service would fail here.
                self.failures.append(f'{method} {path}: {error}')
                return None
            if answer.status_code == expected:
                self._answered(started)
                return answer
            if 'placement.concurrent_update' not in answer.text:
                break
        self.failures.append(f'{method} {path}: {answer.status_code} {answer.text[:200]}')
        return None

    def _answered(self, started):
        with self._lock:
            now = time.monotonic()
            self.answers += 1
            self.longest_gap_s = max(self.longest_gap_s, now - self._last)
            self.slowest_s = max(self.slowest_s, now - started)
            self._last = now


def adapter(file):
    """Returns the client that Nova creates from this section."""
    conf = cfg.ConfigOpts()
    loading.register_session_conf_options(conf, 'placement')
    loading.register_auth_conf_options(conf, 'placement')
    loading.register_adapter_conf_options(conf, 'placement', include_deprecated=False)
    conf([], default_config_files=[file])
    auth = loading.load_auth_from_conf_options(conf, 'placement')
    session = loading.load_session_from_conf_options(conf, 'placement', auth=auth)
    return loading.load_adapter_from_conf_options(conf, 'placement', session=session, auth=auth)
