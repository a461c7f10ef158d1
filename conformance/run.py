"""Runs the gabbi suite of the installed openstack-placement over HTTP against a cluster."""

import argparse
import contextlib
import fnmatch
import glob
import importlib.resources
import os
import random
import sys
import time
import types
import unittest

from gabbi import handlers, suitemaker, utils

import extent
import fixtures
import neighbour
from cases import ClusterCase, ClusterHttp, Session
from cluster import PROFILES, Cluster
from explained import Explained

# gabbi has no hook for the target of a request, so its test factory gets our class.
suitemaker.case = types.SimpleNamespace(HTTPTestCase=ClusterCase)

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    options = parse()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2 ** 32)
    print(f'seed {seed}: scripts/conformance --seed {seed} takes the nodes in the same order again',
          flush=True)
    # Only for the choice of nodes, so that nothing else (such as a used port) affects it.
    choice = random.Random(seed)
    started = time.monotonic()
    ran, passed, failed, written, looked_at = 0, 0, 0, 0, 0
    for profile in PROFILES:
        files = [file for file in suite_files(options.files) if profile_of(file) == profile]
        if not files:
            continue
        cluster = Cluster(options.cluster, profile, choice, options.partition)
        with cluster as nodes:
            Session.nodes = nodes
            # openstack-placement has no explanations.
            is_ours = options.cluster[-1].endswith('run-cluster')
            Session.explained = Explained(nodes.client) if is_ours else None
            Session.consumers.clear()
            other_writes = neighbour.Neighbour(nodes, seed) if options.partition else None
            with other_writes or contextlib.nullcontext():
                for file in files:
                    counts = run_file(file, profile)
                    ran, passed, failed = ran + 1, passed + counts[0], failed + counts[1]
                    if options.dumps:
                        cluster.dump(os.path.join(options.dumps, f'{name_of(file)}.sql'))
            looked_at += Session.explained.looked_at if Session.explained else 0
            if other_writes:
                written += other_writes.written
                failed += len(other_writes.failed)
                print('\n'.join(other_writes.failed))
    for line in Session.forbidden:
        print(f'only the status was checked, as the request is invalid HTTP: {line}')
    print(f'{time.monotonic() - started:.0f} s')
    # Patterns select a part intentionally.
    lost = None if options.files else extent.shortfall(ran, passed + failed)
    if lost:
        print(f'FAILED: {lost}')
    print(f'{looked_at} searches were explained')
    by_status = f', {len(Session.forbidden)} passed by status alone' if Session.forbidden else ''
    if options.partition:
        print(f'{written} writes to another partition succeeded in the meantime')
        failed += not written
    print(f'{passed} passed, {failed} failed{by_status}')
    sys.exit(1 if failed or lost or not passed else 0)


def parse():
    # scripts/conformance describes the options.
    parser = argparse.ArgumentParser(prog='scripts/conformance')
    parser.add_argument('files', nargs='*', metavar='FILE')
    parser.add_argument('--seed', type=int)
    parser.add_argument('--partition', action='store_true')
    parser.add_argument('--reference', dest='cluster', action='store_const',
                        const=[sys.executable, os.path.join(HERE, 'reference.py')],
                        default=[os.path.join(os.path.dirname(HERE), 'scripts', 'run-cluster')])
    parser.add_argument('--dumps', metavar='DIR')
    return parser.parse_args()


def suite_files(patterns):
    """The paths of the suite's files whose names match (all without a pattern), in order."""
    folder = importlib.resources.files('placement') / 'tests' / 'functional' / 'gabbits'
    found = sorted(glob.glob(os.path.join(str(folder), '*.yaml')))
    return [path for path in found
            if any(fnmatch.fnmatch(name_of(path), pattern.removesuffix('.yaml'))
                   for pattern in patterns or ['*'])]


def name_of(path):
    return os.path.basename(path).removesuffix('.yaml')


def profile_of(path):
    [name] = utils.load_yaml(yaml_file=path)['fixtures']
    return getattr(fixtures, name).profile


def run_file(path, profile):
    """Runs one file, prints a line for it and each failure, returns (passed, failed)."""
    suite = suitemaker.test_suite_from_dict(
        unittest.defaultTestLoader, name_of(path), utils.load_yaml(yaml_file=path),
        os.path.dirname(path), 'placement', None, fixtures, None,
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
        test_loader_name='conformance')
    tests = list(suite)
    for test in tests:
        test.http = ClusterHttp()
    result = unittest.TestResult()
    started = time.monotonic()
    suite.run(result)
    passed = passed_of(result)
    failed = len(tests) - passed
    print(f'{"ok  " if not failed else "FAIL"} {name_of(path)} ({profile}): '
          f'{passed} passed, {failed} failed, {time.monotonic() - started:.1f} s', flush=True)
    for test, trace in result.failures + result.errors:
        print(f'---- {test.shortDescription()}\n{trace}', flush=True)
    return passed, failed


def passed_of(result):
    """Number of tests that passed, without skipped tests and expected failures."""
    others = (result.failures, result.errors, result.skipped, result.expectedFailures,
              result.unexpectedSuccesses)
    return max(0, result.testsRun - sum(map(len, others)))


if __name__ == '__main__':
    main()
