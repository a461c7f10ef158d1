"""The commands of the openstack client, which finds them by the entry points of the package."""

import contextlib
import io
import json
import os
import sys
import tempfile
import threading
import tomllib
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HERE = os.path.dirname(os.path.abspath(__file__))
CONSUMER = "0b1d3b2e-6c35-4a3b-9f9a-0d2c7c1b3a11"
HOST = {"uuid": "e1090b0c-0000-4000-8000-000000000001", "name": "cmp-1"}


def install(directory):
    """Writes what an installer writes, so that the entry points are found."""
    with open(f"{HERE}/../pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    info = f"{directory}/placementd_nova-{project['version']}.dist-info"
    os.mkdir(info)
    with open(f"{info}/METADATA", "w") as file:
        file.write(f"Metadata-Version: 2.1\nName: placementd-nova\nVersion: {project['version']}\n")
    with open(f"{info}/entry_points.txt", "w") as file:
        for group, entries in project["entry-points"].items():
            lines = "".join(f"{name} = {target}\n" for name, target in entries.items())
            file.write(f"[{group}]\n{lines}")
    sys.path.insert(0, directory)


class Handler(BaseHTTPRequestHandler):
    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        url = urlsplit(self.path)
        self.server.asked.append((self.command, url.path, parse_qs(url.query), body))
        status, found = self.server.answers.pop(0)
        text = (found if isinstance(found, str) else json.dumps(found)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        os.environ["XDG_CACHE_HOME"] = directory.name
        install(directory.name)
        # It loads the entry points.
        from openstackclient import shell

        cls.shell = shell
        # The client keeps the address for the life of a process.
        cls.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=cls.server.serve_forever, args=(0.01,), daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)

    def setUp(self):
        self.server.asked, self.server.answers = [], []

    def tearDown(self):
        self.assertEqual(self.server.answers, [])

    def run_command(self, *words, answers=()):
        """Returns exit status, output and errors of `openstack placementd`."""
        self.server.answers += answers
        out, errors = io.StringIO(), io.StringIO()
        url = f"http://127.0.0.1:{self.server.server_port}"
        login = ["--os-auth-type", "admin_token", "--os-token", "admin", "--os-endpoint", url]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = self.shell.OpenStackShell().run([*login, "placementd", *words])
        return status, out.getvalue(), errors.getvalue()

    def shows(self, *words, answers=()):
        status, out, errors = self.run_command(*words, "-f", "json", answers=answers)
        self.assertEqual(status, 0, errors)
        return json.loads(out)

    def test_capacity(self):
        row = {"class": "VCPU", "providers": 2, "total": 16, "reserved": 0, "capacity": 16.0,
               "used": 4, "free": 12, "largest_free": 8}
        answer = 200, {"by": "provider", "capacity": [row | {"provider": HOST}]}
        found, = self.shows(
            "capacity", "--by", "provider", "--class", "VCPU", answers=[answer])
        self.assertEqual((found["Provider"], found["Largest free"]), ("cmp-1", 8))
        (_, path, query, _), = self.server.asked
        self.assertEqual(path, "/placementd/v1/capacity")
        self.assertEqual(query, {"by": ["provider"], "class": ["VCPU"]})

    def test_fits_lists_levels_and_counts(self):
        large = {"name": "m1.large", "level": "few", "count": 3, "exact": True, "complete": True}
        answer = 200, {"fits": [large, {"name": "gpu", "level": "many"}]}
        found = self.shows("fits", answers=[answer])
        self.assertEqual((found[0]["Level"], found[0]["Count"]), ("few", 3))
        self.assertEqual((found[1]["Level"], found[1]["Count"]), ("many", None))
        self.assertEqual(self.server.asked[0][1], "/placementd/v1/fits")

    def test_refuge_lists_new_hosts_and_reasons(self):
        taken = {"provider": HOST, "root": HOST, "resources": {"VCPU": 1}}
        why = {"reason": "room", "cause": 0, "funnel": [
            {"atom": "room", "class": "VCPU", "asked": 8, "left": 0, "gone": 1}]}
        answer = {
            "complete": True, "exact": False,
            "left": [{"consumer": "big", "resources": {"VCPU": 8}, "why": 0}],
            "explanations": [why],
            "moves": [{"consumer": CONSUMER, "to": [taken, taken]}],
        }
        listed = {"resource_providers": [HOST]}
        status, out, errors = self.run_command(
            "refuge", "cmp-1", "--required", "CUSTOM_GPU", "-f", "json",
            answers=[(400, {}), (200, listed), (200, answer)])
        self.assertEqual(status, 0, errors)
        left, moved = json.loads(out)
        self.assertEqual((left["Consumer"], left["Why not"]), ("big", "room for VCPU:8"))
        self.assertEqual((moved["To"], moved["Resources"]), ("cmp-1", {"VCPU": 2}))
        self.assertIn("Another assignment", errors)
        _, _, (_, path, query, _) = self.server.asked
        self.assertEqual(path, "/placementd/v1/refuge")
        self.assertEqual(query, {"provider": [HOST["uuid"]], "required": ["CUSTOM_GPU"],
                                 "order": ["pack"], "moves": ["true"]})

    def test_refuge_of_an_unknown_host(self):
        status, _, errors = self.run_command(
            "refuge", "cmp-9", answers=[(400, {}), (200, {"resource_providers": []})])
        self.assertEqual(status, 1)
        self.assertIn("No resource provider has the UUID or name cmp-9.", errors)

    def test_history_reads_all_pages_up_to_the_limit(self):
        def page(index, following):
            change = {"kind": "allocation", "key": {"consumer": CONSUMER, "resource_provider": "p"},
                      "before": None, "after": {"resources": {"VCPU": 1}}}
            entry = {"index": index, "at": "2026-11-29T10:00:00Z", "verb": "Claim",
                     "request_id": "req-1", "changes": [change]}
            return 200, {"history": [entry], "oldest": "7.1", "next": following}

        found = self.shows(
            "history", "--consumer", CONSUMER, "--limit", "2",
            answers=[page("7.9", "7.8"), page("7.5", "7.4")])
        self.assertEqual([row["Index"] for row in found], ["7.9", "7.5"])
        self.assertEqual(found[0]["After"], {"resources": {"VCPU": 1}})
        first, second = [query for _, _, query, _ in self.server.asked]
        self.assertEqual(first, {"consumer": [CONSUMER], "limit": ["2"]})
        self.assertEqual(second, first | {"limit": ["1"], "before": ["7.8"]})

    def test_events_list_content_and_changes_and_name_the_token(self):
        lines = [
            {"snapshot": "7.3"},
            {"kind": "class", "key": {"resource_class": "CUSTOM_A"}, "value": {"name": "CUSTOM_A"}},
            {"snapshot_end": "7.3"},
            {"index": "7.4", "at": None, "verb": "Claim", "request_id": None, "changes": [
                {"kind": "consumer", "key": {"consumer": CONSUMER}, "before": None, "after": {}}]},
            {"progress": "7.4"},
        ]
        answer = 200, "\n".join(map(json.dumps, lines))
        status, out, errors = self.run_command(
            "events", "--kind", "class,consumer", answers=[answer])
        self.assertEqual(status, 0, errors)
        self.assertRegex(out, r'\| class +\| CUSTOM_A +\| +\| {"name": "CUSTOM_A"} +\|')
        self.assertRegex(out, rf"7\.4 .* Claim .* consumer +\| {CONSUMER} +\|")
        self.assertIn("--after 7.4 ", errors)
        (_, _, query, _), = self.server.asked
        self.assertEqual(query, {"kind": ["class,consumer"], "follow": ["false"]})

    EXPLANATION = {
        "verdict": "none", "reason": "room", "trees": 3, "with_candidates": 0, "undecided": 0,
        "funnel": [{"atom": "room", "class": "VCPU", "asked": 4, "left": 0, "gone": 3,
                    "examples": [HOST]}],
        "relaxations": [{"trees": 3, "query": "resources=VCPU:2"}],
        "nearest": [{"root": HOST, "lacks": [
            {"atom": "room", "class": "VCPU", "asked": 4, "free": 2}]}],
    }

    def test_explain_a_query(self):
        status, out, errors = self.run_command(
            "explain", "resources=VCPU:4&required=A&required=B", answers=[(200, self.EXPLANATION)])
        self.assertEqual(status, 0, errors)
        for line in ("0 after room for VCPU:4; removes 3, such as cmp-1",
                     "3 trees: resources=VCPU:2", "cmp-1: room for VCPU:4 (2 free)"):
            self.assertIn(line, out)
        (_, path, query, _), = self.server.asked
        self.assertEqual(path, "/placementd/v1/explain")
        self.assertEqual(query, {"resources": ["VCPU:4"], "required": ["A", "B"]})

    def test_explain_a_request_which_another_node_has_answered(self):
        nothing = 200, {"searches": [], "left_out": 0}
        search = {"query": "resources=VCPU:4", "at": None, "candidates": 0,
                  "explanation": self.EXPLANATION}
        found = self.shows(
            "explain", "req-1", answers=[nothing, (200, {"searches": [search], "left_out": 0})])
        self.assertEqual((found["candidates"], found["reason"]), (0, "room"))
        self.assertEqual(found["nearest"][0]["root"]["name"], "cmp-1")

    def test_unknown_request_is_an_error(self):
        nothing = 200, {"searches": [], "left_out": 0}
        status, _, errors = self.run_command("explain", "req-1", answers=[nothing] * 12)
        self.assertEqual(status, 1)
        self.assertIn("knows a search of req-1", errors)

    CLAIMED = {"choice": 0, "repeated": False, "consumer_generations": {CONSUMER: 1},
               "allocations": {CONSUMER: {HOST["uuid"]: {"resources": {"VCPU": 2}}}}}

    def test_claim_of_a_query(self):
        found = self.shows(
            "claim", "--query", "resources=VCPU:2", "--order", "pack", "--consumer", CONSUMER,
            "--project", "p", "--user", "u", "--type", "INSTANCE", answers=[(200, self.CLAIMED)])
        self.assertEqual(found["allocations"], self.CLAIMED["allocations"])
        (method, path, _, body), = self.server.asked
        self.assertEqual((method, path), ("POST", "/placementd/v1/claims"))
        self.assertEqual(body, {
            "consumers": {CONSUMER: {"project_id": "p", "user_id": "u",
                                     "consumer_type": "INSTANCE", "consumer_generation": None}},
            "want": {"query": "resources=VCPU:2", "order": "pack"}})

    def test_claim_of_a_file(self):
        body = {"consumers": {}, "choices": []}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(body, file)
            file.flush()
            self.shows("claim", "--file", file.name, answers=[(200, self.CLAIMED)])
        self.assertEqual(self.server.asked[0][3], body)

    def test_refused_claim_is_an_error_with_the_message_of_the_service(self):
        error = {"status": 409, "code": "placement.claim.no_room", "detail": "No choice has room."}
        status, _, errors = self.run_command(
            "claim", "--query", "resources=VCPU:2", "--consumer", CONSUMER, "--project", "p",
            "--user", "u", answers=[(409, {"errors": [error]})])
        self.assertEqual(status, 1)
        self.assertIn("No choice has room. (HTTP 409, placement.claim.no_room)", errors)

    def test_upstream_has_no_such_route(self):
        error = {"status": 404, "detail": "The resource could not be found."}
        status, _, errors = self.run_command("capacity", answers=[(404, {"errors": [error]})])
        self.assertEqual(status, 1)
        self.assertIn("The Placement service has no /placementd/v1/capacity", errors)
