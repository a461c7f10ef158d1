"""Schedules instances on a cluster of placementd, by many threads at once.

usage: on_placementd.py URL [TEST...]
tests/tests/clients.rs runs it.
"""

import faulthandler
import itertools
import os
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

from cloud import PROJECT, Cloud, World
from keystoneauth1 import adapter, session, token_endpoint
from nova import exception

# The program fails if it takes longer, in seconds.
LIMIT = 500
THREADS = 20


class OnPlacementd(Cloud):
    names = itertools.count()

    def setUp(self):
        super().setUp()
        auth = token_endpoint.Token(World.placement, "admin")
        self.api = adapter.Adapter(
            session.Session(auth=auth), service_type="placement", default_microversion="1.39")
        self.instances = []
        self.addCleanup(self.clean)

    def clean(self):
        for instance in self.instances:
            self.api.delete(f"/allocations/{instance}", raise_exc=False)
        for provider in self.placement.providers:
            self.api.delete(f"/resource_providers/{provider}")

    def host(self, vcpus=8):
        """Adds a host to Nova and to the service."""
        name = f"host-{next(self.names)}"
        provider = super().host(name, vcpus)
        self.api.post("/resource_providers", json={"name": name, "uuid": provider})
        inventories = {
            resource_class: {"total": total}
            for resource_class, total in self.placement.providers[provider].inventories.items()
        }
        self.api.put(
            f"/resource_providers/{provider}/inventories",
            json={"resource_provider_generation": 0, "inventories": inventories})
        self.api.put(
            f"/resource_providers/{provider}/traits",
            json={"resource_provider_generation": 1, "traits": ["OWNER_NOVA"]})
        return name

    def new(self, count=1):
        created = super().new(count)
        self.instances += created
        return created

    def held_by(self, instance):
        return set(self.api.get(f"/allocations/{instance}").json()["allocations"])

    def writes_of(self, instance):
        """The log entries that have written what an instance holds, as index and command."""
        path = f"/placementd/v1/history?kind=allocation&consumer={instance}"
        history = self.api.get(path).json()["history"]
        return tuple((entry["index"], entry["verb"]) for entry in history)

    def race(self, instances, **spec):
        """Schedules each instance by itself, all at once; returns the hosts of those that got one,
        and the reasons of the others."""
        def schedule(instance):
            try:
                (selected, *_), = self.schedule([instance], return_alternates=False, **spec)
            except exception.NoValidHost as refused:
                self.assertEqual(self.held_by(instance), set())
                return None, str(refused)
            self.assertEqual(self.held_by(instance), {selected.compute_node_uuid})
            return selected.service_host, None

        with ThreadPoolExecutor(THREADS) as threads:
            found = list(threads.map(schedule, instances))
        return [host for host, _ in found if host], [reason for _, reason in found if reason]

    def test_exactly_as_many_instances_as_fit_are_claimed(self):
        for _ in range(20):
            self.host(vcpus=2)
        hosts, reasons = self.race(self.new(60))
        self.assertEqual((len(hosts), len(reasons)), (40, 20))

    def test_fifty_instances_of_one_request_take_one_write(self):
        for _ in range(20):
            self.host(vcpus=4)
        instances = self.new(50)
        selections = self.schedule(instances)
        for instance, (selected, *_) in zip(instances, selections):
            self.assertEqual(self.held_by(instance), {selected.compute_node_uuid})
        entries = {self.writes_of(instance) for instance in instances}
        self.assertEqual([verb for ((_, verb),) in entries], ["Claim"])

    def test_members_of_a_group_are_apart(self):
        for _ in range(4):
            self.host()
        instances = self.new(20)
        group = self.group("anti-affinity", *instances, max_server_per_host=2)
        hosts, _ = self.race(instances, group=group)
        self.assertEqual(sorted(hosts.count(host) for host in set(hosts)), [2] * 4)

    def test_members_of_a_group_are_together(self):
        # The order of hosts is random.
        self.settings(filter_scheduler={"host_subset_size": 4})
        for _ in range(4):
            self.host(vcpus=10)
        instances = self.new(10)
        hosts, reasons = self.race(instances, group=self.group("affinity", *instances))
        self.assertEqual((len(hosts), len(set(hosts)), reasons), (10, 1, []))

    def test_project_gets_exactly_its_limit(self):
        self.settings(quota={"driver": "nova.quota.UnifiedLimitsDriver"})
        for limits in ({"servers": 20, "class:VCPU": -1}, {"servers": -1, "class:VCPU": 20}):
            self.placement.registered = {"class:MEMORY_MB": -1, "class:DISK_GB": -1} | limits
            for _ in range(4):
                self.host(vcpus=20)
            hosts, reasons = self.race(self.new(40))
            self.assertEqual((len(hosts), len(reasons)), (20, 20))
            for reason in reasons:
                self.assertIn(f"Project {PROJECT} is over a limit", reason)
            self.clean()
            self.instances.clear()
            self.placement.providers.clear()
            self.world.clear()

    def test_evacuated_instance_holds_both_hosts(self):
        source, target = self.host(), self.host()
        instance = self.existing(source)
        self.schedule([instance], ignore_hosts=[target])
        self.schedule([instance], ignore_hosts=[source], return_alternates=False)
        self.assertEqual(self.held_by(instance), set(self.placement.providers))


if __name__ == "__main__":
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    World.placement = sys.argv[1]
    os.environ["no_proxy"] = "*"
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
