"""How large the suite of openstack-placement 16.0.0 is, so that none of it is lost unseen."""

FILES = 79
TESTS = 1316


def shortfall(files, tests):
    """What is wrong with a run of the whole suite that ran this many files and tests, or None."""
    if (files, tests) == (FILES, TESTS):
        return None
    return (f'the suite has {FILES} files with {TESTS} tests, and {files} files with {tests} tests '
            'were run: see what openstack-placement is installed, and which files it brings')
