"""What the site is built of: fetched once, and compared with the hash that was published for that version."""

import base64
import hashlib
import shutil
import subprocess
from pathlib import Path

DOWNLOADS = Path(__file__).resolve().parents[2] / "docs" / "_build" / "downloads"


class Failed(Exception):
    """The site can't be built; the message says why, and what to do."""


class Unreachable(Failed):
    """Something that has to be fetched cannot be had here and now."""


def from_npm(name: str, version: str, integrity: str) -> Path:
    """The archive of a package without a scope, `integrity` being what `npm view NAME@VERSION dist.integrity` says."""
    archive = DOWNLOADS / f"{name}-{version}.tgz"
    if not archive.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise Unreachable(f"npm is needed to fetch {name}. Install Node.js (Debian: apt install npm).")
        DOWNLOADS.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", f"{name}@{version}", "--loglevel=error", "--pack-destination", str(DOWNLOADS)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            said = [line.strip() for line in done.stdout.splitlines() if line.strip()] or ["it said nothing"]
            raise Unreachable(f"npm could not fetch {name} {version} ({said[-1]}). Check your connection.")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != integrity:
        raise Failed(f"{archive} is not the file that was published. Delete it, and try again.")
    return archive
