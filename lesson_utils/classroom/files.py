"""Files that are whole at every moment: written beside their place, and moved into it."""

import os
from pathlib import Path


def put(path: Path, content: str | bytes) -> None:
    """Write a file so that, whatever happens, the old one stands there or the new one, and never half of one.

    Text is written as UTF-8 with the ends of lines that it has; what no UTF-8 can hold, such as half an emoji, as its
    escape.

    Raises:
        OSError: it could not be written. The old file is as it was.
    """
    content = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # or a power failure could leave the new name with nothing in it
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
