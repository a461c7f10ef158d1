"""The stream of changes and its interruptions."""

import itertools
import unittest
from unittest import mock

from keystoneauth1 import exceptions
from stand_in import StandIn, at, lost, stream, unavailable


def entry(index: str) -> dict:
    return {"index": index, "at": "now", "verb": "PutTrait", "changes": []}


def take(events, count: int) -> list:
    return list(itertools.islice(events, count))


@mock.patch("placementd_client.events.PAUSE", 0.0)
class Events(unittest.TestCase):
    def test_a_stream_resumes_after_its_end(self):
        first = [entry("7.2"), {"progress": "7.3"}, {"end": "lifetime", "next": "7.4"}]
        with StandIn(stream(*first), stream(entry("7.5"))) as service:
            events = service.adapter().events("7.1", kind="trait", class_="VCPU")
            self.assertEqual(take(events, 3), [entry("7.2"), {"progress": "7.3"}, entry("7.5")])
            self.assertEqual([one.query["after"] for one in service.asked], ["7.1", "7.4"])
            query = {"kind": "trait", "class": "VCPU", "or_snapshot": "true", "after": "7.4"}
            self.assertEqual(service.asked[1].query, query)
            self.assertEqual(events.after, "7.5")

    def test_an_interrupted_line_is_requested_again(self):
        for is_cut in (False, True):
            part = stream(entry("7.2"), part='{"index": "7.3", "ch', is_cut=is_cut)
            with self.subTest(is_cut), StandIn(part, stream(entry("7.3"))) as service:
                events = service.adapter().events("7.1")
                with self.assertLogs("placementd_client", "WARNING"):
                    self.assertEqual(take(events, 2), [entry("7.2"), entry("7.3")])
                self.assertEqual(service.asked[1].query["after"], "7.2")

    def test_an_interrupted_snapshot_begins_again(self):
        item = {"kind": "class", "key": {"resource_class": "VCPU"}, "value": {"name": "VCPU"}}
        begins = [{"reset": "7.9"}, {"snapshot": "7.9"}, item]
        whole = [{"snapshot": "7.11"}, item, {"snapshot_end": "7.11"}]
        with StandIn(stream(*begins, is_cut=True), stream(*whole)) as service:
            events = service.adapter().events("7.1")
            with self.assertLogs("placementd_client", "WARNING"):
                self.assertEqual(take(events, 6), begins + whole)
            self.assertNotIn("after", service.asked[1].query)
            self.assertEqual(events.after, "7.11")

    def test_a_read_sees_the_state_of_an_event(self):
        with StandIn(stream(entry("7.2")), at("7.2")) as service:
            placement = service.adapter()
            for _ in take(placement.events("7.1"), 1):
                placement.get("/traits")
            self.assertEqual(service.sent("Placement-Min-Index"), [None, "7.2"])

    def test_a_failed_iteration_can_continue(self):
        with StandIn(stream(entry("7.2")), unavailable("busy"), stream(entry("7.3"))) as service:
            events = service.adapter(patience=0.0).events("7.1")
            with self.assertRaises(exceptions.ServiceUnavailable):
                with self.assertLogs("placementd_client", "WARNING"):
                    take(events, 2)
            self.assertEqual(take(events, 1), [entry("7.3")])
            self.assertEqual(service.asked[2].query["after"], "7.2")

    def test_a_refused_stream_is_repeated(self):
        with StandIn(lost(), unavailable("busy"), stream(entry("7.2"))) as service:
            self.assertEqual(take(service.adapter().events("7.1"), 1), [entry("7.2")])


if __name__ == "__main__":
    unittest.main()
