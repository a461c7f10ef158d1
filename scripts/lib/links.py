"""Checks that each link in the HTML below a directory leads to an existing file and id.

usage: links.py DIR
"""

import pathlib
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.ids, self.links = set(), set()
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name"):
                self.ids.add(value)
            if name in ("href", "src") and value:
                self.links.add(value)


root = pathlib.Path(sys.argv[1]).resolve()
pages = {file: Page(file) for file in root.rglob("*.html")}
checked, broken = 0, []
for file, page in pages.items():
    for link in page.links:
        url = urlsplit(link)
        # The 404 page is served at any path, so its relative links cannot be checked.
        if url.scheme or url.netloc or file.name == "404.html":
            continue
        checked += 1
        target = (file.parent / unquote(url.path)).resolve() if url.path else file
        known = pages.get(target)
        if not target.exists() or known and url.fragment and unquote(url.fragment) not in known.ids:
            broken.append(f"{file.relative_to(root)} links to {link}")
print(*sorted(broken), f"{len(pages)} pages, {checked} links, {len(broken)} broken", sep="\n")
sys.exit(bool(broken) or checked < 500)
