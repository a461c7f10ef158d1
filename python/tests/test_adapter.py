"""Consistency of reads, and which requests are repeated."""

import socket
import time
import unittest

from keystoneauth1 import exceptions
from stand_in import StandIn, at, lost, refused, unavailable

from placementd_client import OutcomeUnknown

HOSTS = "/resource_providers"
CLAIM = "/allocations/8bf2b0c6-2d6d-4a3e-9d0e-0c5a8f1f8a4c"


class Session(unittest.TestCase):
    def test_reads_have_the_greatest_index_of_earlier_answers(self):
        with StandIn(at("7.9"), at("7.12"), at("7.10"), at("7.12")) as service:
            placement = service.adapter()
            placement.put(CLAIM, json={})
            for _ in range(3):
                placement.get(HOSTS)
            self.assertEqual(service.sent("Placement-Min-Index"), [None, "7.9", "7.12", "7.12"])
            self.assertEqual(placement.min_index, "7.12")

    def test_writes_have_no_index(self):
        with StandIn(at("7.9"), at("7.10")) as service:
            placement = service.adapter()
            placement.get(HOSTS)
            placement.put(CLAIM, json={})
            self.assertEqual(service.sent("Placement-Min-Index"), [None, None])
            self.assertEqual(service.sent("OpenStack-API-Version"), ["placement 1.39"] * 2)

    def test_another_epoch_replaces_the_index(self):
        with StandIn(at("7.9"), at("8.1")) as service:
            placement = service.adapter()
            placement.put(CLAIM, json={})
            placement.put(CLAIM, json={})
            self.assertEqual(placement.min_index, "8.1")

    def test_errors_give_no_index(self):
        foreign = refused(412, "placement.consistency.foreign_index", Placement_Index="8.1")
        with StandIn(at("7.9"), foreign, at("7.9")) as service:
            placement = service.adapter()
            placement.put(CLAIM, json={})
            with self.assertRaises(exceptions.PreconditionFailed):
                placement.get(HOSTS)
            placement.min_index = None
            placement.get(HOSTS)
            self.assertEqual(service.sent("Placement-Min-Index"), [None, "7.9", None])

    def test_a_header_of_the_request_replaces_the_index(self):
        with StandIn(at("7.9"), at("7.9")) as service:
            placement = service.adapter()
            placement.get(HOSTS)
            placement.get(HOSTS, headers={"placement-min-index": "7.3"})
            self.assertEqual(service.sent("Placement-Min-Index"), [None, "7.3"])


class Repetition(unittest.TestCase):
    def test_a_read_is_always_repeated(self):
        with StandIn(lost(), unavailable("outcome_unknown"), at("7.1")) as service:
            self.assertEqual(service.adapter().get(HOSTS).status_code, 200)

    def test_a_write_without_effect_is_repeated(self):
        answers = [unavailable(code) for code in ("nothing_committed", "busy", "identity")]
        too_many = refused(429, "placement.too_many_requests")
        with StandIn(*answers, too_many, at("7.1")) as service:
            self.assertEqual(service.adapter().put(CLAIM, json={}).status_code, 200)

    def test_a_429_of_a_proxy_is_returned(self):
        with StandIn(refused(429, "of.a.proxy")) as service:
            with self.assertRaises(exceptions.TooManyRequests):
                service.adapter().get(HOSTS)

    def test_a_write_with_an_unknown_outcome_is_not_repeated(self):
        for doubt in (lost(), unavailable("outcome_unknown"), refused(503, "of.a.proxy")):
            with self.subTest(doubt), StandIn(doubt) as service:
                with self.assertRaises(OutcomeUnknown):
                    service.adapter().put(CLAIM, json={}, raise_exc=False)

    def test_a_write_with_an_unknown_outcome_is_repeated_if_allowed(self):
        doubts = [lost(), unavailable("outcome_unknown")]
        with StandIn(*doubts, at("7.1"), at("7.2")) as service:
            placement = service.adapter(repeat_unknown=True)
            placement.put(CLAIM, json={})
            placement.put(CLAIM, json={})
            first, second, third, other = service.sent("X-OpenStack-Request-Id")
            self.assertRegex(first, "^req-[0-9a-f-]{36}$")
            self.assertEqual([first, first], [second, third])
            self.assertNotEqual(first, other)

    def test_a_request_id_of_the_caller_is_kept(self):
        with StandIn(lost(), at("7.1")) as service:
            placement = service.adapter(repeat_unknown=True, global_request_id="req-1")
            placement.put(CLAIM, json={})
            self.assertEqual(service.sent("X-OpenStack-Request-Id"), ["req-1", "req-1"])

    def test_later_attempts_without_effect_do_not_resolve_an_unknown_outcome(self):
        nothing = unavailable("nothing_committed", Retry_After="9")
        with StandIn(lost(), nothing) as service:
            with self.assertRaises(OutcomeUnknown):
                service.adapter(repeat_unknown=True).put(CLAIM, json={})

    def test_retry_after_is_obeyed(self):
        with StandIn(unavailable("busy", Retry_After="1"), at("7.1")) as service:
            begun = time.monotonic()
            service.adapter().get(HOSTS)
            self.assertGreaterEqual(time.monotonic() - begun, 1.0)

    def test_without_patience_the_last_answer_is_the_result(self):
        nothing = unavailable("nothing_committed")
        with StandIn(nothing, nothing) as service:
            placement = service.adapter(patience=0.0)
            with self.assertRaises(exceptions.ServiceUnavailable):
                placement.put(CLAIM, json={})
            answer = placement.put(CLAIM, json={}, raise_exc=False)
            self.assertEqual(answer.status_code, 503)

    def test_retries_of_keystoneauth_are_off(self):
        retries = {"connect_retries": 3, "status_code_retries": 3}
        for doubt in (lost(), unavailable("outcome_unknown")):
            with self.subTest(doubt), StandIn(doubt) as service:
                with self.assertRaises(OutcomeUnknown):
                    service.adapter(**retries).put(CLAIM, json={})

    def test_a_write_is_repeated_while_connections_are_refused(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
        service = StandIn()
        service.server.server_close()
        service.url = url
        begun = time.monotonic()
        with self.assertRaises(exceptions.ConnectFailure):
            service.adapter(patience=0.3).put(CLAIM, json={})
        self.assertGreater(time.monotonic() - begun, 0.1)


if __name__ == "__main__":
    unittest.main()
