"""Boots: one claim for all instances of a request."""

import json
import unittest
import unittest.mock

from cloud import PROJECT, USER, Cloud
from nova import exception, service

from placementd_nova import scheduler


class One(Cloud):
    def test_instance_is_claimed_with_one_request_on_the_best_host(self):
        best, second = self.host("best"), self.host("second")
        instances = self.new()
        selections = self.schedule(instances)
        self.assertEqual(self.hosts(selections), ["best"])
        claim, = self.claims()
        self.assertEqual(claim["consumers"], {instances[0]: {
            "project_id": PROJECT, "user_id": USER, "consumer_type": "INSTANCE",
            "consumer_generation": None}})
        providers = [list(choice[instances[0]]["allocations"]) for choice in claim["choices"]]
        self.assertEqual(providers, [[best], [second]])
        self.assertEqual(self.held(instances[0]), {best})
        self.assertEqual(self.sent("GET", "/allocations/") + self.sent("PUT", "/allocations/"), 0)
        request = json.loads(selections[0][0].allocation_request)
        self.assertEqual(list(request["allocations"]), [best])
        self.assertEqual([alternate.service_host for alternate in selections[0][1:]], ["second"])

    def test_next_host_is_taken_if_another_client_fills_the_best_one(self):
        best, second = self.host("best"), self.host("second")
        self.placement.before.append(lambda: self.placement.hold("other", best, VCPU=8))
        instances = self.new()
        selections = self.schedule(instances)
        self.assertEqual(self.hosts(selections), ["second"])
        self.assertEqual(self.held(instances[0]), {second})
        self.assertEqual(len(self.claims()), 1)
        request = json.loads(selections[0][0].allocation_request)
        self.assertEqual(list(request["allocations"]), [second])

    def test_second_candidate_of_a_host_is_taken(self):
        best = self.host("best", cards=3)
        instances = self.new()
        card, other, _ = [uuid for uuid, one in self.placement.providers.items() if one.parent]
        self.placement.before.append(lambda: self.placement.hold("other", card, VGPU=1))
        self.schedule(instances, flavor=self.flavor(**{"resources:VGPU": "1"}))
        self.assertEqual(self.held(instances[0]), {best, other})
        self.assertEqual(len(self.claims()[0]["choices"]), 2)

    def test_hosts_after_the_first_sixteen_are_tried_next(self):
        hosts = [self.host(f"host-{number}") for number in range(20)]

        def fill():
            for host in hosts[:17]:
                self.placement.hold(f"other-{host}", host, VCPU=8)

        self.placement.before.append(fill)
        instances = self.new()
        self.assertEqual(self.hosts(self.schedule(instances)), ["host-17"])
        self.assertEqual([len(claim["choices"]) for claim in self.claims()], [16, 4])

    def test_full_cloud_is_no_valid_host_and_users_learn_nothing_about_hosts(self):
        best = self.host("best")
        self.placement.before.append(lambda: self.placement.hold("other", best, VCPU=8))
        instances = self.new()
        with self.assertRaises(exception.NoValidHost) as refused:
            self.schedule(instances)
        self.assertNotIn("node-7", str(refused.exception))
        self.assertEqual(self.held(instances[0]), set())

    def test_request_whose_first_answer_was_lost_gets_the_same_host(self):
        self.host("best")
        second = self.host("second")
        instances = self.new()
        self.placement.hold(
            instances[0], second, type="INSTANCE", VCPU=1, MEMORY_MB=256, DISK_GB=1)
        before = self.placement.consumers[instances[0]]
        self.assertEqual(self.hosts(self.schedule(instances)), ["second"])
        self.assertIs(self.placement.consumers[instances[0]], before)
        self.assertEqual(len(self.claims()), 1)

    def test_that_host_may_be_one_that_the_first_claim_does_not_have(self):
        hosts = [self.host(f"host-{number}") for number in range(18)]
        instances = self.new()
        self.placement.hold(
            instances[0], hosts[17], type="INSTANCE", VCPU=1, MEMORY_MB=256, DISK_GB=1)
        before = self.placement.consumers[instances[0]]
        self.assertEqual(self.hosts(self.schedule(instances)), ["host-17"])
        self.assertIs(self.placement.consumers[instances[0]], before)


class Several(Cloud):
    def test_fifty_instances_are_claimed_with_one_request(self):
        hosts = [self.host(f"host-{number}", vcpus=4) for number in range(15)]
        instances = self.new(50)
        selections = self.schedule(instances)
        self.assertEqual(len(selections), 50)
        self.assertEqual(len(self.claims()), 1)
        for instance, (chosen, *_) in zip(instances, selections):
            self.assertEqual(self.held(instance), {chosen.compute_node_uuid})
        self.assertLessEqual(max(self.placement.used(host, "VCPU") for host in hosts), 4)

    def test_instances_that_share_a_host_have_room_there_together(self):
        self.host("small", vcpus=1)
        self.host("large", vcpus=3)
        self.assertEqual(sorted(self.hosts(self.schedule(self.new(4)))), ["large"] * 3 + ["small"])
        self.assertEqual(len(self.claims()), 1)

    def test_all_or_nothing(self):
        self.host("one", vcpus=1)
        self.host("two", vcpus=1)
        instances = self.new(3)
        with self.assertRaises(exception.NoValidHost):
            self.schedule(instances)
        self.assertEqual(self.claims(), [])
        self.assertEqual(self.placement.consumers, {})

    def test_another_assignment_of_the_same_claim_is_taken(self):
        hosts = [self.host(f"host-{number}", vcpus=1) for number in range(6)]
        self.placement.before.append(lambda: self.placement.hold("other", hosts[0], VCPU=1))
        instances = self.new(2)
        selections = self.schedule(instances)
        self.assertEqual(len(self.claims()), 1)
        self.assertNotIn("host-0", self.hosts(selections))
        for instance, (chosen, *_) in zip(instances, selections):
            self.assertEqual(self.held(instance), {chosen.compute_node_uuid})

    def test_search_is_repeated_if_others_took_all_that_it_found(self):
        hosts = [self.host(f"host-{number}", vcpus=2) for number in range(2)]
        late = self.host("late", vcpus=2)
        self.placement.hold("others", late, VCPU=2)

        def others_move():
            self.placement.hold("other", hosts[0], VCPU=1)
            del self.placement.consumers["others"]

        self.placement.before.append(others_move)
        instances = self.new(4)
        self.schedule(instances)
        self.assertEqual(len(self.claims()), 2)
        self.assertTrue(all(self.held(instance) for instance in instances))

    def test_fewer_choices_are_sent_if_the_service_accepts_no_more(self):
        for number in range(6):
            self.host(f"host-{number}")
        self.placement.amounts_max = 6
        instances = self.new(2)
        self.schedule(instances)
        self.assertEqual([len(claim["choices"]) for claim in self.claims()], [6, 1])
        self.assertTrue(all(self.held(instance) for instance in instances))


class WithoutClaims(Cloud):
    def is_claimed_as_by_nova(self):
        self.host("best")
        instances = self.new(2)
        self.assertEqual(self.hosts(self.schedule(instances)), ["best"] * 2)
        self.assertEqual(self.sent("PUT", "/allocations/"), 2)

    def test_upstream_is_used_as_by_nova_and_asked_once_a_minute(self):
        self.placement.has_claims = False
        with self.assertLogs("placementd_nova", "WARNING"):
            self.is_claimed_as_by_nova()
        self.schedule(self.new())
        self.assertEqual((self.sent("GET", "/placementd/v1"), len(self.claims())), (1, 0))

    def test_service_that_is_replaced_by_upstream_is_used_as_by_nova(self):
        self.host("first")
        self.schedule(self.new())
        self.placement.has_claims = False
        self.schedule(self.new())
        self.assertEqual((len(self.claims()), self.sent("PUT", "/allocations/")), (2, 1))

    def test_rebuild_on_the_same_host_claims_nothing(self):
        self.host("best")
        instance = self.existing("best")
        self.schedule([instance], scheduler_hints={"_nova_check_type": ["rebuild"]})
        self.assertEqual(self.placement.asked, [])


class Script(unittest.TestCase):
    def test_scheduler_of_nova_starts_with_the_manager(self):
        with unittest.mock.patch("nova.cmd.scheduler.main") as main:
            with unittest.mock.patch.dict(service.SERVICE_MANAGERS):
                with unittest.mock.patch("sys.argv", ["/bin/nova-scheduler-placementd"]) as argv:
                    scheduler.main()
                self.assertEqual(
                    service.SERVICE_MANAGERS["nova-scheduler"], scheduler.MANAGER)
        main.assert_called_once_with()
        self.assertEqual(argv, ["/bin/nova-scheduler"])
