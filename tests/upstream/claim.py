"""Claims resources as Nova's scheduler does: with keystoneauth, and with the id of its own request.

usage: claim.py CONFIG PATH BODY REQUEST_ID
CONFIG has the `[placement]` section of a service. Prints the status and the text of the answer, as JSON.
"""
import json
import sys

from placement_section import adapter

HEADERS = {"OpenStack-API-Version": "placement 1.39"}


def main(config: str, path: str, body: str, request_id: str) -> None:
    answer = adapter(config).put(
        path, json=json.loads(body), headers=HEADERS, raise_exc=False, global_request_id=request_id)
    print(json.dumps({"status": answer.status_code, "text": answer.text}))


if __name__ == "__main__":
    main(*sys.argv[1:])
