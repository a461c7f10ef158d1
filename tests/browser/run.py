"""Drives Chromium over the pages of a cluster whose leaders are killed and restarted in the
meantime."""

import argparse
import collections
import http.client
import importlib.resources
import os
import re
import shutil
import sys
import time
import urllib.parse

from playwright.sync_api import sync_playwright

from cloud import Cloud, uuid
from cluster import Cluster, Killer

PAGE_BYTES_MAX = 150_000
PHONE = {'width': 375, 'height': 800}
DESKTOP = {'width': 1100, 'height': 700}
OF = '/web/placement/default'
# Pages that no link leads to.
ASKED = [
    f'{OF}/capacity?by=trait', f'{OF}/capacity?resources=VCPU:4,MEMORY_MB:4096', f'{OF}/capacity?local=true',
    f'{OF}/candidates?resources=VCPU:4', f'{OF}/candidates?resources=VCPU:100000',
    f'{OF}/candidates?resources=PCPU:1,VCPU:1&required=HW_CPU_X86_AVX2', f'{OF}/providers?name=cmp-',
    f'{OF}/history?kind=allocation', f'{OF}/providers/{uuid("a", 101)}', f'{OF}/providers/{uuid("b", 10)}',
    f'{OF}/consumers/{uuid("c", 0)}']
EXPLANATION = f'{OF}/candidates?resources=VCPU:100000&required=HW_CPU_X86_AVX2'
SCREENSHOTS = {'overview': '/web/', 'capacity': f'{OF}/capacity?resources=VCPU:4,MEMORY_MB:4096',
               'tree': f'{OF}/providers/{uuid("a", 10)}', 'explanation': EXPLANATION}
# One page of each kind is checked closely; a kind is a page with the same address apart from UUIDs.
UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
TABS_MAX = 60
OUTAGE_S_MAX = 30


def parse():
    # scripts/browser describes the options.
    parser = argparse.ArgumentParser(prog='scripts/browser')
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--hosts', type=int)
    parser.add_argument('--screenshots', metavar='DIR')
    parser.add_argument('--release', action='store_true')
    return parser.parse_args()


def main():
    options = parse()
    extent = {'hosts': 200, 'of_a_kind': 1, 'samples': 5, 'killing_s': 15}
    if options.full:
        extent = {'hosts': 5000, 'of_a_kind': 3, 'samples': 20, 'killing_s': 120}
    extent['hosts'] = options.hosts or extent['hosts']
    with Cluster() as cluster, sync_playwright() as playwright:
        begun = time.monotonic()
        Cloud([node['api'] for node in cluster.nodes], extent['hosts']).fill()
        print(f'{extent["hosts"]} hosts in {time.monotonic() - begun:.0f} s', flush=True)
        # Chromium has no sandbox when it runs as root, as in a container.
        sandbox = os.getuid() != 0
        program = shutil.which('chromium')
        with playwright.chromium.launch(executable_path=program, chromium_sandbox=sandbox) as chromium:
            browser = Browser(chromium, cluster.address)
            look(browser, cluster, extent, options.screenshots)
    for finding in browser.findings:
        print(f'FAILED: {finding}')
    print(f'{len(browser.seen)} pages, {time.monotonic() - begun:.0f} s')
    sys.exit(1 if browser.findings else 0)


def look(browser, cluster, extent, screenshots):
    browser.check_that_findings_are_found()
    paths = crawl(browser, extent['of_a_kind'])
    look_closely(browser, paths)
    by_keyboard(browser)
    if screenshots:
        take_pictures(browser, screenshots)
    first_bytes(browser, paths, extent['samples'])
    while_leaders_are_killed(browser, cluster, paths, extent['killing_s'])


class Browser:
    """Chromium with the cookie of `placementctl web`, and the problems it has found."""

    def __init__(self, chromium, address):
        self.origin = address.partition('/?')[0]
        self.findings = []
        self.seen = {}
        self._errors = []
        self._chromium = chromium
        first = chromium.new_context(viewport=DESKTOP)
        first.new_page().goto(address)
        self._state = first.storage_state()
        self.cookie = '; '.join(f'{one["name"]}={one["value"]}' for one in first.cookies())
        first.close()
        self.page = self._watched(True)
        self.silent = self._watched(False)

    def _watched(self, has_script):
        context = self._chromium.new_context(storage_state=self._state, java_script_enabled=has_script,
                                             viewport=DESKTOP)
        # Chromium also writes violations of a page's content security policy to the console.
        context.on('console', lambda message: message.type == 'error' and self._errors.append(message.text))
        context.on('weberror', lambda error: self._errors.append(str(error.error)))
        context.on('request', lambda request: request.url.startswith(f'{self.origin}/')
                   or self._errors.append(f'a request to {request.url}'))
        page = context.new_page()
        page.set_default_timeout(60_000)
        return page

    def found(self, path, what):
        finding = f'{path}: {what}'
        if finding not in self.findings:
            self.findings.append(finding)
            print(f'found: {finding}', flush=True)

    def visit(self, path, page=None):
        """Loads a page; returns its status and size."""
        page = page or self.page
        self._errors.clear()
        response = page.goto(self.origin + path)
        body = response.body()
        # The caller checks the status.
        errors = [one for one in self._errors if not one.startswith('Failed to load resource')]
        for error in errors:
            self.found(path, error)
        if len(body) > PAGE_BYTES_MAX:
            self.found(path, f'{len(body)} bytes')
        self.seen[path] = len(body)
        return response.status

    def check_that_findings_are_found(self):
        """Breaks the policy of a page and checks that this is reported: a blind browser would find
        nothing."""
        self.visit('/web/')
        self._errors.clear()
        self.page.evaluate('document.body.setAttribute("style", "color: red")')
        self.page.evaluate('new Image().src = "http://placement.invalid/"')
        self.page.wait_for_timeout(500)
        errors = '\n'.join(self._errors)
        if 'style' not in errors or 'placement.invalid' not in errors:
            self.found('/web/', f'violations of the policy are not detected: {errors}')


def kind_of(path):
    """Returns the kind of a page: its path without UUIDs, and the names of its parameters."""
    target = urllib.parse.urlsplit(path)
    parameters = urllib.parse.parse_qsl(target.query, keep_blank_values=True)
    return UUID.sub('{}', target.path) + ''.join(sorted(f' {name}' for name, _ in parameters))


def crawl(browser, of_a_kind):
    """Follows links; returns the visited pages, at most `of_a_kind` of each kind."""
    left = collections.deque(['/web/', *ASKED, EXPLANATION])
    asked = set(left)
    kinds = collections.Counter()
    paths = []
    while left:
        path = left.popleft()
        if path not in ASKED and kinds[kind_of(path)] >= of_a_kind:
            continue
        kinds[kind_of(path)] += 1
        paths.append(path)
        status = browser.visit(path)
        if status != 200:
            browser.found(path, f'status {status}')
        links = browser.page.eval_on_selector_all('a[href]', 'all => all.map(one => one.getAttribute("href"))')
        for link in links:
            if link.startswith('/') and link not in asked:
                asked.add(link)
                left.append(link)
    largest = max(browser.seen.values())
    print(f'{len(paths)} pages of {len(kinds)} kinds were checked; the largest has {largest} bytes', flush=True)
    return paths


# Characters that change the direction of writing and would reverse the names that follow.
TURNS = re.compile('[\u202a-\u202e\u2066-\u2069]')


def look_closely(browser, paths):
    axe = (importlib.resources.files('axe_playwright_python') / 'axe.min.js').read_text()
    for path in [*paths, '/web/nothing']:
        for colors, size in [('light', DESKTOP), ('dark', PHONE)]:
            browser.page.set_viewport_size(size)
            browser.page.emulate_media(color_scheme=colors)
            browser.visit(path)
            if size == PHONE:
                wide = browser.page.evaluate('document.scrollingElement.scrollWidth - innerWidth')
                if wide > 0:
                    browser.found(path, f'it is {wide} pixels too wide for a phone')
            browser.page.evaluate(axe)
            judged = browser.page.evaluate('axe.run({resultTypes: ["violations"]})')
            for violation in judged['violations']:
                if violation['impact'] in ('serious', 'critical'):
                    where = violation['nodes'][0]['html'][:200]
                    browser.found(path, f'{colors}: {violation["id"]}: {violation["help"]}: {where}')
        browser.page.set_viewport_size(DESKTOP)
        browser.page.emulate_media(color_scheme='light')
        if TURNS.search(browser.page.content()):
            browser.found(path, 'a name changes the direction of writing')
        # Numbers on the page may change between two visits.
        for _ in range(3):
            browser.visit(path)
            browser.visit(path, browser.silent)
            texts = [re.sub(r'[\d.]+', '0', page.inner_text('body')) for page in (browser.page, browser.silent)]
            if texts[0] == texts[1] and texts[0]:
                break
        else:
            browser.found(path, 'its text differs without JavaScript')


def by_keyboard(browser):
    """Goes from the first page to an explanation with the keyboard only."""
    page = browser.page
    browser.visit('/web/')
    focused = 'document.activeElement.textContent + "|" + (document.activeElement.name || "")'

    def tab_to(wanted):
        for _ in range(TABS_MAX):
            page.keyboard.press('Tab')
            if page.evaluate(focused) == wanted:
                outline = page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
                if outline == 'none':
                    browser.found(page.url, f'the focus on {wanted} is invisible')
                return
        browser.found(page.url, f'{wanted} is unreachable by keyboard')

    tab_to('Candidates|')
    with page.expect_navigation():
        page.keyboard.press('Enter')
    tab_to('|resources')
    page.keyboard.type('VCPU:100000')
    with page.expect_navigation():
        page.keyboard.press('Enter')
    if 'No candidates' not in page.inner_text('.verdict'):
        browser.found(page.url, 'no explanation')


def take_pictures(browser, directory):
    os.makedirs(directory, exist_ok=True)
    for name, path in SCREENSHOTS.items():
        for look, colors, size in [('light', 'light', DESKTOP), ('dark', 'dark', DESKTOP), ('phone', 'light', PHONE)]:
            browser.page.set_viewport_size(size)
            browser.page.emulate_media(color_scheme=colors)
            browser.visit(path)
            browser.page.screenshot(path=os.path.join(directory, f'{name}-{look}.png'))


def first_bytes(browser, paths, samples):
    """Prints the time to the first byte of each kind of page."""
    address = urllib.parse.urlsplit(browser.origin).netloc
    connection = http.client.HTTPConnection(address, timeout=60)
    print('| page | kB | first byte, median | p95 |\n|---|---:|---:|---:|')
    for kind, path in {kind_of(path): path for path in reversed(paths)}.items():
        times = []
        for _ in range(samples):
            begun = time.perf_counter()
            connection.request('GET', path, headers={'Cookie': browser.cookie})
            answer = connection.getresponse()
            times.append(time.perf_counter() - begun)
            size = len(answer.read())
        times.sort()
        median, late = times[len(times) // 2], times[min(len(times) - 1, round(len(times) * 0.95))]
        print(f'| `{kind}` | {size / 1000:.1f} | {median * 1000:.1f} ms | {late * 1000:.1f} ms |', flush=True)
    connection.close()


def while_leaders_are_killed(browser, cluster, paths, seconds):
    """Checks that a page fails only while there is no leader, and says so."""
    killer = Killer(cluster)
    killer.start()
    begun = time.monotonic()
    missing = visits = 0
    # Visits each page at least once.
    while visits < len(paths) or killer.killed < 2 or time.monotonic() - begun < seconds:
        path = paths[visits % len(paths)]
        visits += 1
        asked = time.monotonic()
        while (status := browser.visit(path)) != 200:
            missing += 1
            if status not in (502, 503, 504) or time.monotonic() - asked > OUTAGE_S_MAX:
                text = browser.page.inner_text('body')[:500]
                browser.found(path, f'status {status} while leaders are killed: {text}')
                break
            browser.page.wait_for_timeout(200)
        if killer.error:
            break
    killer.end()
    if killer.error:
        browser.found('the cluster', killer.error)
    print(f'{visits} pages while {killer.killed} leaders were killed; {missing} failed at first')


if __name__ == '__main__':
    main()
