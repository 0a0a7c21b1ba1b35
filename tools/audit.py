"""Look up known weaknesses in what the course installs, and in what its site brings along: `python -m tools.audit`.

It needs a network, npm and pip-audit (`.venv/bin/python -m pip install pip-audit`), and is run weekly by GitHub's
workflow. What SECURITY.md promises is done with a finding: a range or a version moves, or `JUDGED` says why not.
"""

import json
import subprocess
import sys
import tempfile
from typing import Any

from tools.site import build, lite

JUDGED: dict[str, str] = {}  # the id of a weakness, GHSA-…: why it does not concern those who use the course


def of_python() -> int:
    """Look up what is installed beside this Python; return an exit code."""
    ignored = [f"--ignore-vuln={id_}" for id_ in JUDGED]
    return subprocess.call([sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner=off", *ignored])


def of_site() -> int:
    """Look up the packages from npm in the site, with what they need; return an exit code."""
    packages = [f"mathjax@{build.MATHJAX}", f"pyodide@{lite.PYODIDE}", f"wabt@{lite.WABT}"]
    with tempfile.TemporaryDirectory() as folder:
        there = ["--prefix", folder]  # or npm looks for a project in the folders above
        subprocess.run(["npm", "install", "--package-lock-only", "--ignore-scripts", *there, *packages], check=True)
        said = subprocess.run(["npm", "audit", "--json", *there], stdout=subprocess.PIPE).stdout
    found = weaknesses(json.loads(said))
    print("\n".join(found) or f"npm knows of no weakness in {', '.join(packages)}")
    return bool(found)


def weaknesses(report: dict[str, Any]) -> list[str]:
    """Return a line for each weakness that npm found and nobody has judged.

    Raises:
        ValueError: it is no report of findings, as when the registry can't be asked.
    """
    if "vulnerabilities" not in report:
        raise ValueError(f"npm could not look anything up: {report.get('message') or report.get('error')}")
    found = [via for package in report["vulnerabilities"].values() for via in package["via"] if isinstance(via, dict)]
    lines = {f"{via['name']} {via['range']}: {via['title']} ({via['url']})": via["url"] for via in found}
    return [line for line, url in lines.items() if url.rpartition("/")[2] not in JUDGED]


def main() -> int:
    return of_python() | of_site()


if __name__ == "__main__":
    sys.exit(main())
