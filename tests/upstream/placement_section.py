"""Reads a `[placement]` section as Nova does, with keystoneauth, and asks for a path.

usage: placement_section.py CONFIG PATH
Prints the settings that keystoneauth does not know, and the status of the answer, as JSON.
"""
import configparser
import json
import sys

from keystoneauth1 import loading
from oslo_config import cfg

GROUP = "placement"


def adapter(file: str):
    """Returns the client that Nova creates from this section."""
    conf = cfg.ConfigOpts()
    loading.register_session_conf_options(conf, GROUP)
    loading.register_auth_conf_options(conf, GROUP)
    loading.register_adapter_conf_options(conf, GROUP, include_deprecated=False)
    conf([], default_config_files=[file])
    auth = loading.load_auth_from_conf_options(conf, GROUP)
    session = loading.load_session_from_conf_options(conf, GROUP, auth=auth)
    return loading.load_adapter_from_conf_options(conf, GROUP, session=session, auth=auth)


def main(file: str, path: str) -> None:
    known = [
        *loading.get_session_conf_options(),
        *loading.get_auth_common_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
        *loading.get_auth_plugin_conf_options("password"),
        *loading.get_auth_plugin_conf_options("admin_token"),
    ]
    given = configparser.ConfigParser(interpolation=None)
    given.read(file)
    unknown = set(given[GROUP]) - {option.dest for option in known}
    answer = adapter(file).get(path, raise_exc=False)
    print(json.dumps({"unknown": sorted(unknown), "status": answer.status_code}))


if __name__ == "__main__":
    main(*sys.argv[1:])
