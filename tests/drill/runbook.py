"""Reads commands and configurations out of the pages of docs/deploy."""

import os
import re

from processes import Failed

DEPLOY = os.path.join(os.path.dirname(__file__), '..', '..', 'docs', 'deploy')


def page(name):
    with open(os.path.join(DEPLOY, name)) as file:
        return file.read()


def block(name, language):
    """Returns the first block of a page in this language."""
    return page(name).split(f'```{language}\n', 1)[1].split('```', 1)[0]


def command(chapter, *parts, without=None):
    """Returns the command of a chapter of moving.md that has all these parts and not `without`."""
    text = page('moving.md').split(f'\n## {chapter}\n', 1)[1].split('\n## ', 1)[0]
    lines = [line.strip() for line in text.splitlines() if line.startswith('    ')]
    found = [line for line in lines if all(part in line for part in parts) and not (without and without in line)]
    if len(found) != 1:
        raise Failed(f'"{chapter}" of moving.md has {len(found)} commands with {parts}')
    return found[0]


def balancer(directory, port, port_of_old, nodes):
    """Returns the configuration before a move in: that of haproxy.md without TLS, with the lines of
    moving.md."""
    lines = block('haproxy.md', 'haproxy').splitlines()
    own = [line for line in lines if not line.strip().startswith(('retries', 'server ', 'bind'))]
    text = '\n'.join(own).replace('    mode http', f'    mode http\n    bind 127.0.0.1:{port}', 1)
    return (f'global\n    stats socket {directory}/admin.sock mode 660 level admin\n{text}\n'
            f'{servers_of_move(port_of_old, nodes)}')


def servers_of_move(port_of_old, nodes, out=False):
    """Returns the haproxy lines of moving.md for a move in, or for a move out."""
    lines = block('moving.md', 'haproxy').replace('10.0.0.9:8778', f'127.0.0.1:{port_of_old}')
    for node in nodes:
        lines = lines.replace(f'10.0.0.{node.id}:8778', node.api)
    if out:
        lines = re.sub('(server node-.*) disabled', r'\1', lines)
        lines = re.sub('(server old .*)', r'\1 disabled', lines)
    return lines


def nova(url):
    """Returns the `[placement]` section of README.md without Keystone, which the drill does not
    run."""
    section = block('README.md', 'ini')
    return section.replace('auth_type = password', f'auth_type = admin_token\nendpoint = {url}\ntoken = admin')
