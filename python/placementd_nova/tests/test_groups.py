"""Server groups: their rule is decided with the claim."""

from cloud import Cloud
from nova import exception, objects


class AntiAffinity(Cloud):
    def test_claim_has_the_members_and_the_rule(self):
        self.host("best")
        instance, = self.new()
        group = self.group("anti-affinity", instance, "00000000-0000-4000-8000-000000000001")
        self.schedule([instance], group=group)
        self.assertEqual(self.claims()[0]["apart"], [{
            "members": ["00000000-0000-4000-8000-000000000001", instance]
            if instance > "00000000-0000-4000-8000-000000000001"
            else [instance, "00000000-0000-4000-8000-000000000001"], "most": 1}])
        self.assertNotIn("together", self.claims()[0])

    def test_member_that_another_scheduler_placed_keeps_this_one_away(self):
        best = self.host("best")
        self.host("second")
        one, other = self.new(2)
        group = self.group("anti-affinity", one, other)
        self.placement.before.append(lambda: self.placement.hold(other, best, VCPU=1))
        self.assertEqual(self.hosts(self.schedule([one], group=group)), ["second"])
        self.assertEqual(len(self.claims()), 1)

    def test_host_may_have_as_many_members_as_the_rule_says(self):
        best = self.host("best")
        self.host("second")
        one, other, third = self.new(3)
        group = self.group("anti-affinity", one, other, third, max_server_per_host=2)
        self.placement.hold(other, best, VCPU=1)
        self.assertEqual(self.hosts(self.schedule([one], group=group)), ["best"])
        self.assertEqual(self.hosts(self.schedule([third], group=group)), ["second"])

    def test_host_may_have_more_members_than_a_claim_can_name(self):
        self.host("best")
        one, = self.new()
        self.schedule([one], group=self.group("anti-affinity", one, max_server_per_host=5000))
        self.assertEqual(self.claims()[0]["apart"][0]["most"], 1000)

    def test_members_of_one_request_are_apart(self):
        for number in range(3):
            self.host(f"host-{number}")
        instances = self.new(3)
        group = self.group("anti-affinity", *instances)
        found = self.hosts(self.schedule(instances, group=group))
        self.assertEqual(sorted(found), ["host-0", "host-1", "host-2"])
        self.assertEqual(len(self.claims()), 1)

    def test_no_host_without_a_member_is_no_valid_host(self):
        best = self.host("best")
        one, other = self.new(2)
        group = self.group("anti-affinity", one, other)
        self.placement.hold(other, best, VCPU=1)
        with self.assertRaises(exception.NoValidHost):
            self.schedule([one], group=group)
        self.assertEqual(self.held(one), set())

    def test_there_are_no_alternates_since_they_would_be_claimed_without_the_rule(self):
        self.host("best")
        self.host("second")
        one, = self.new()
        group = self.group("anti-affinity", one)
        self.assertEqual(len(self.schedule([one], group=group)[0]), 1)

    def test_refused_instances_are_not_left_in_the_lists_of_hosts(self):
        best = self.host("best", vcpus=1)
        second = self.host("second", vcpus=1)
        instances = self.new(2)
        group = self.group("anti-affinity", *instances)
        for host in ("best", "second"):
            # After the second report, the list is the one that requests read.
            for _ in range(2):
                self.manager.sync_instance_info(self.context, host, [])

        def fill():
            self.placement.hold("other", best, VCPU=1)
            self.placement.hold("another", second, VCPU=1)

        self.placement.before.append(fill)
        with self.assertRaises(exception.NoValidHost):
            self.schedule(instances, group=group)
        known = self.manager.host_manager._instance_info
        self.assertEqual(
            {host: info["instances"] for host, info in known.items()}, {"best": {}, "second": {}})


class NewMembers(Cloud):
    """Members that are added while an instance is scheduled."""

    def setUp(self):
        super().setUp()
        self.best = self.host("best")
        self.second = self.host("second")
        self.one, self.late = self.new(2)
        self.of_late = self.group("anti-affinity", self.one)

    def is_added(self):
        objects.InstanceGroup.add_members(self.context, self.of_late.uuid, [self.late])

    def is_added_and_claimed_before(self):
        self.is_added()
        self.placement.hold(self.late, self.best, VCPU=1)

    def test_members_are_read_just_before_the_claim(self):
        spec = self.spec
        self.spec = lambda *args, **more: (spec(*args, **more), self.is_added())[0]
        self.schedule([self.one], group=self.of_late)
        self.assertIn(self.late, self.claims()[0]["apart"][0]["members"])

    def test_claim_is_undone_if_a_new_member_was_claimed_before_it(self):
        self.placement.before.append(self.is_added_and_claimed_before)
        selections = self.schedule([self.one], group=self.of_late)
        self.assertEqual(self.hosts(selections), ["second"])
        self.assertEqual(self.held(self.one), {self.second})
        self.assertEqual(self.held(self.late), {self.best})

    def test_claim_stays_if_a_new_member_holds_nothing_yet(self):
        self.placement.before.append(self.is_added)
        self.assertEqual(self.hosts(self.schedule([self.one], group=self.of_late)), ["best"])
        self.assertEqual(self.held(self.one), {self.best})
        first, again = self.claims()
        generation = again["consumers"][self.one]["consumer_generation"]
        self.assertEqual((generation, len(again["choices"])), (1, 1))
        self.assertNotIn(self.late, first["apart"][0]["members"])
        self.assertIn(self.late, again["apart"][0]["members"])


class Affinity(Cloud):
    def test_member_that_another_scheduler_placed_draws_this_one(self):
        self.host("best")
        second = self.host("second")
        one, other = self.new(2)
        group = self.group("affinity", one, other)
        self.placement.before.append(lambda: self.placement.hold(other, second, VCPU=1))
        self.assertEqual(self.hosts(self.schedule([one], group=group)), ["second"])
        self.assertEqual(len(self.claims()), 1)
        self.assertNotIn("apart", self.claims()[0])

    def test_members_of_one_request_are_together(self):
        self.host("best")
        self.host("second")
        instances = self.new(3)
        group = self.group("affinity", *instances)
        self.assertEqual(len(set(self.hosts(self.schedule(instances, group=group)))), 1)
        self.assertEqual(len(self.claims()), 1)


class Soft(Cloud):
    def test_soft_policies_are_for_weighers_only(self):
        self.host("best")
        self.host("second")
        for policy in ("soft-affinity", "soft-anti-affinity"):
            one, = self.new()
            group = self.group(policy, one)
            self.assertEqual(len(self.schedule([one], group=group)[0]), 2)
        for claim in self.claims():
            self.assertFalse(claim.keys() & {"apart", "together"})
