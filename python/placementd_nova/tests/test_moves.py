"""Moves: what an instance holds before."""

from cloud import Cloud
from nova import exception

HELD = {"VCPU": 1, "MEMORY_MB": 256, "DISK_GB": 1}


class Moves(Cloud):
    def setUp(self):
        super().setUp()
        self.source = self.host("source")
        self.target = self.host("target")
        self.instance = self.existing("source")

    def evacuated(self, **more):
        self.placement.hold(self.instance, self.source, "INSTANCE", **HELD)
        return self.schedule(
            [self.instance], ignore_hosts=["source"], return_alternates=False, **more)

    def test_migrated_instance_is_claimed_as_new_since_its_migration_holds_the_source(self):
        self.placement.hold("migration", self.source, **HELD)
        self.schedule([self.instance], ignore_hosts=["source"])
        self.assertEqual(self.held(self.instance), {self.target})
        self.assertEqual(self.held("migration"), {self.source})
        self.assertEqual(len(self.claims()), 1)

    def test_evacuated_instance_keeps_what_it_holds_until_nova_removes_it(self):
        self.evacuated()
        self.assertEqual(self.held(self.instance), {self.source, self.target})
        self.assertEqual(
            self.placement.consumers[self.instance].allocations,
            {self.source: {"resources": HELD}, self.target: {"resources": HELD}})

    def test_evacuation_has_no_limits(self):
        self.settings(quota={"driver": "nova.quota.UnifiedLimitsDriver"})
        self.placement.registered = {"servers": 1, "class:VCPU": 1}
        self.evacuated()
        self.assertEqual(self.held(self.instance), {self.source, self.target})

    def test_evacuated_members_are_apart(self):
        other, = self.new()
        third = self.host("third")
        group = self.group("anti-affinity", self.instance, other)
        self.placement.hold(other, self.target, VCPU=1)
        self.assertEqual(self.hosts(self.evacuated(group=group)), ["third"])
        self.assertEqual(self.held(self.instance), {self.source, third})

    def test_instance_that_is_changed_by_another_is_not_claimed(self):
        self.placement.hold(self.instance, self.source, "INSTANCE", **HELD)

        def change():
            self.placement.consumers[self.instance].generation += 1

        self.placement.before += [change, change]
        with self.assertRaises(exception.AllocationUpdateFailed):
            self.schedule([self.instance], ignore_hosts=["source"])
        self.assertEqual(self.held(self.instance), {self.source})


class Unanswered(Cloud):
    def test_claim_without_an_answer_is_no_valid_host(self):
        self.host("best")
        instances = self.new()

        def fail():
            raise ConnectionResetError

        self.placement.before.append(fail)
        with self.assertRaises(exception.NoValidHost) as refused:
            self.schedule(instances)
        self.assertIn("The claim of resources failed.", str(refused.exception))
        self.assertEqual(self.held(instances[0]), set())
