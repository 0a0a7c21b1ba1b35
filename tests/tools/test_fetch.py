"""What the site is built of is fetched once, and is what was published or refused."""

import hashlib
import sys

import pytest

from tools.site import fetch, lite

CONTENT = b"a wheel"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def downloads(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "DOWNLOADS", tmp_path / "downloads")
    return tmp_path / "downloads"


def test_what_is_published_is_kept_and_another_file_is_refused(downloads, tmp_path):
    published = tmp_path / "a-1.0-py3-none-any.whl"
    with pytest.raises(fetch.Unreachable, match=r"any\.whl could not be fetched .+ --no-lite leaves out JupyterLite"):
        fetch.from_web(published.as_uri(), DIGEST)
    assert list(downloads.iterdir()) == []
    published.write_bytes(CONTENT)
    assert fetch.from_web(published.as_uri(), DIGEST) == downloads / published.name
    published.unlink()
    assert fetch.from_web(published.as_uri(), DIGEST).read_bytes() == CONTENT
    for _ in range(2):
        with pytest.raises(fetch.Failed, match=r"any\.whl is not the file that was published\. Delete it, and try"):
            fetch.from_web(published.as_uri(), "0" * 64)


@pytest.mark.parametrize(("said", "reason"), [("first\nERROR: no host\n\n", "ERROR: no host"), ("", "it said nothing")])
def test_a_program_that_fails_is_quoted(said, reason):
    with pytest.raises(fetch.Unreachable, match=rf"^npm could not fetch a \({reason}\)\. Check your connection"):
        fetch.run([sys.executable, "-c", f"print({said!r}); exit(1)"], "npm could not fetch a", fetch.Unreachable)


def test_without_npm_or_node_it_says_what_to_install(downloads, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(fetch.Unreachable, match=r"npm is needed to fetch a\. Install Node\.js"):
        fetch.from_npm("a", "1.0", "sha512-")
    with pytest.raises(fetch.Unreachable, match=r"Node\.js is needed to prepare Python's packages\. Install it"):
        lite.prepare(tmp_path, [], tmp_path)
