"""Size of the suite of openstack-placement 16.0.0, to detect missing files and tests."""

FILES = 79
TESTS = 1316


def shortfall(files, tests):
    """An error message if a run of the whole suite had another number of files or tests, else None."""
    if (files, tests) == (FILES, TESTS):
        return None
    return (f'the suite has {FILES} files with {TESTS} tests, and {files} files with {tests} tests '
            'were run: check the installed version of openstack-placement and its files')
