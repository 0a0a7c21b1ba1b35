"""What the site is built of is fetched once, and is what was published or refused."""

import hashlib
import subprocess
from types import SimpleNamespace

import pytest

from tools.site import fetch, lite

CONTENT = b"a wheel"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def downloads(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "DOWNLOADS", tmp_path / "downloads")
    return tmp_path / "downloads"


@pytest.fixture
def published(tmp_path):
    file = tmp_path / "a-1.0-py3-none-any.whl"
    file.write_bytes(CONTENT)
    return file


def test_what_was_fetched_is_kept(downloads, published):
    assert fetch.from_web(published.as_uri(), DIGEST) == downloads / published.name
    published.unlink()
    assert fetch.from_web(published.as_uri(), DIGEST).read_bytes() == CONTENT


def test_another_file_is_refused(downloads, published):
    published.write_bytes(b"another")
    for _ in range(2):
        with pytest.raises(fetch.Failed, match=r"any\.whl is not the file that was published\. Delete it, and try"):
            fetch.from_web(published.as_uri(), DIGEST)


def test_what_cannot_be_reached_is_named(downloads, published):
    published.unlink()
    with pytest.raises(fetch.Unreachable, match=r"any\.whl could not be fetched .+ --no-lite leaves out JupyterLite"):
        fetch.from_web(published.as_uri(), DIGEST)
    assert list(downloads.iterdir()) == []


@pytest.mark.parametrize(("said", "reason"), [("first\nERROR: no host\n\n", "ERROR: no host"), ("", "it said")])
def test_a_client_that_fails_is_quoted(downloads, monkeypatch, said, reason):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stdout=said))
    monkeypatch.setattr(fetch.shutil, "which", lambda name: name)
    with pytest.raises(fetch.Unreachable, match=rf"^pip could not fetch a==1\.0 \({reason}.*\)\. Check your connec"):
        fetch.from_pypi("a==1.0", DIGEST)
    with pytest.raises(fetch.Unreachable, match=rf"^npm could not fetch a 1\.0 \({reason}.*\)\. Check your connection"):
        fetch.from_npm("a", "1.0", "sha512-")


def test_without_npm_or_node_it_says_what_to_install(downloads, monkeypatch, tmp_path):
    monkeypatch.setattr(fetch.shutil, "which", lambda name: None)
    with pytest.raises(fetch.Unreachable, match=r"npm is needed to fetch a\. Install Node\.js"):
        fetch.from_npm("a", "1.0", "sha512-")
    with pytest.raises(fetch.Unreachable, match=r"Node\.js is needed to prepare Python's packages\. Install it"):
        lite.prepare(tmp_path, [], tmp_path)


def test_a_page_gets_what_its_packages_need():
    depends = {"a": ["b_c"], "b-c": ["d"], "d": ["a"], "e": ["a"]}
    lock = SimpleNamespace(packages={name: SimpleNamespace(depends=needs) for name, needs in depends.items()})
    assert lite.with_needs(["a"], lock) == ["a", "b-c", "d"]


def test_a_page_loads_the_course_before_the_first_cell_and_what_the_kernel_asks_for():
    """The kernel would fetch whatever it asks for and this list lacks: by its own names, with an underscore."""
    asked = {"micropip", "piplite", "ssl", "sqlite3", "ipykernel", "comm", "pyodide_kernel", "jedi", "ipython"}
    assert {"lesson-utils", *asked} <= set(lite.first_loaded())
