"""Packages from npm: fetched once, and compared with the hash that npm publishes for that version."""

import base64
import hashlib
import shutil
import subprocess
from pathlib import Path

DOWNLOADS = Path(__file__).resolve().parent / "_build" / "downloads"


class Missing(Exception):
    """Something that has to be fetched cannot be had; the message says what to do."""


def package(name: str, version: str, integrity: str) -> Path:
    """The archive of a package without a scope, `integrity` being what `npm view NAME@VERSION dist.integrity` says."""
    archive = DOWNLOADS / f"{name}-{version}.tgz"
    if not archive.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise Missing(f"npm is needed to fetch {name}. Install Node.js (Debian: apt install npm), and try again.")
        DOWNLOADS.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", f"{name}@{version}", "--silent", "--pack-destination", str(DOWNLOADS)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Missing(f"npm could not fetch {name} {version} ({done.stdout.strip()}). Check your connection.")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != integrity:
        raise Missing(f"{archive} is not the file that was published. Delete it, and try again.")
    return archive
