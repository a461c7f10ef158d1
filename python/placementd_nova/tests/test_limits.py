"""Unified limits: ceilings of the claim."""

from cloud import PROJECT, Cloud
from nova import exception
from nova.compute import vm_states

CLASSES = {"class:VCPU": 20, "class:MEMORY_MB": -1, "class:DISK_GB": -1}


class Limits(Cloud):
    def setUp(self):
        super().setUp()
        self.best = self.host("best", vcpus=40)
        self.second = self.host("second", vcpus=40)
        self.settings(quota={"driver": "nova.quota.UnifiedLimitsDriver"})
        self.placement.registered = CLASSES | {"servers": 10}

    def ceilings(self):
        return [claim.get("ceilings", []) for claim in self.claims()]


class Boots(Limits):
    def test_claim_has_the_limits_of_servers_and_of_its_classes(self):
        self.schedule(self.new())
        self.assertEqual(self.ceilings(), [[
            {"projects": [PROJECT], "class": "VCPU", "limit": 20},
            {"projects": [PROJECT], "types": ["INSTANCE"], "count": True, "limit": 10}]])

    def test_limits_of_the_project_replace_registered_ones(self):
        self.placement.limits = {"class:VCPU": 5, "servers": -1}
        self.schedule(self.new())
        self.assertEqual(
            self.ceilings(), [[{"projects": [PROJECT], "class": "VCPU", "limit": 5}]])

    def test_limit_that_others_reach_first_is_named(self):
        self.placement.before.append(
            lambda: self.placement.hold("other", self.second, VCPU=20))
        instances = self.new()
        with self.assertRaises(exception.NoValidHost) as refused:
            self.schedule(instances)
        self.assertIn(
            "Project project is over a limit for class:VCPU: 20 of 20 are used, and 1 more are "
            "requested.", str(refused.exception))
        self.assertEqual(self.held(instances[0]), set())

    def test_servers_count_by_their_type_so_that_migrations_do_not_count(self):
        for number in range(9):
            self.placement.hold(f"server-{number}", self.second, "INSTANCE", MEMORY_MB=1)
        self.placement.hold("migration", self.second, MEMORY_MB=1)
        self.schedule(self.new())
        with self.assertRaises(exception.NoValidHost) as refused:
            self.schedule(self.new())
        self.assertIn("over a limit for servers: 10 of 10", str(refused.exception))

    def test_instances_of_one_request_count_together(self):
        self.placement.limits = {"class:VCPU": 3}
        instances = self.new(4)
        with self.assertRaises(exception.NoValidHost) as refused:
            self.schedule(instances)
        self.assertIn("0 of 3 are used, and 4 more", str(refused.exception))
        self.assertEqual(self.placement.consumers, {})

    def test_limit_of_zero_is_enforced_and_a_missing_one_as_nova_is_configured(self):
        self.placement.limits = {"class:VCPU": 0}
        with self.assertRaises(exception.NoValidHost):
            self.schedule(self.new())
        self.placement.limits = {}
        del self.placement.registered["class:VCPU"]
        self.schedule(self.new())
        self.settings(quota={"unified_limits_resource_list": ["servers", "class:VCPU"]})
        with self.assertRaises(exception.NoValidHost):
            self.schedule(self.new())

    def test_sum_of_two_classes_is_left_to_nova(self):
        self.settings(workarounds={"unified_limits_count_pcpu_as_vcpu": True})
        self.schedule(self.new())
        self.assertEqual([len(ceilings) for ceilings in self.ceilings()], [1])

    def test_other_quotas_are_no_ceilings(self):
        self.settings(quota={"driver": "nova.quota.DbQuotaDriver"})
        self.schedule(self.new())
        self.assertEqual(self.ceilings(), [[]])
        self.assertEqual(self.sent("GET", "/identity/v3/limits"), 0)


class Existing(Limits):
    """Servers that exist: Nova checks limits for a resize and for shelved servers."""

    def test_resize_has_the_limits_of_its_classes(self):
        instance = self.existing("best", vcpus=2)
        self.schedule([instance], flavor=self.flavor(4))
        self.assertEqual(
            self.ceilings(), [[{"projects": [PROJECT], "class": "VCPU", "limit": 20}]])

    def test_server_that_was_shelved_has_the_limits_of_its_classes(self):
        instance = self.existing("best", vm_state=vm_states.SHELVED_OFFLOADED)
        self.schedule([instance])
        self.assertEqual(
            self.ceilings(), [[{"projects": [PROJECT], "class": "VCPU", "limit": 20}]])

    def test_migration_has_no_limits(self):
        self.placement.hold("other", self.second, VCPU=20)
        instance = self.existing("second")
        # Nova lets the migration hold the source.
        self.placement.hold("migration", self.second, VCPU=1)
        self.schedule([instance], ignore_hosts=["second"], return_alternates=False)
        self.assertEqual(self.ceilings(), [[]])
        self.assertEqual(self.held(instance), {self.best})
