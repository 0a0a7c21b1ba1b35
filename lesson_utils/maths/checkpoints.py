"""Files of parameters: a model's parameters saved, and loaded again."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from lesson_utils.maths.training import Trainable

FORMAT = "lesson_utils parameters, version 1"
FORMAT_NAME = "#format"  # no attribute, and so no parameter, can have this name


def save(model: Trainable, path: str | os.PathLike[str]) -> None:
    """Write a model's parameters to a file (.npz, nothing but arrays and their names).

    The new file appears when it is complete; until then an older file of that name stays as it is.

    Raises:
        ValueError: a parameter holds NaN or infinite values.
    """
    path = Path(path)
    arrays = {name: np.asarray(param.value) for name, param in model.params().items()}  # what is packed, unpacked
    for name, value in arrays.items():
        if not np.isfinite(value).all():
            raise ValueError(f"{name} holds NaN or infinite values; nothing was saved")
    contents: dict[str, Any] = {FORMAT_NAME: np.array(FORMAT), **arrays}
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, **contents)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def load(model: Trainable, path: str | os.PathLike[str]) -> None:
    """Read a file of `save` into a model of the same shape. The model changes only if everything fits.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, is something else, or belongs to another model.
    """
    params = model.params()
    most = 2**20 + 16 * sum(param.value.size for param in params.values())  # a small file can unpack to gigabytes
    with Path(path).open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as stored:
                size = sum(info.file_size for info in stored.zip.infolist())
                arrays = {name: stored[name] for name in stored.files} if size <= most else {}
                tag = str(arrays.pop(FORMAT_NAME, "none"))
        except Exception as error:  # a damaged file can fail in any way; which one is told
            raise ValueError(
                f"{path} is damaged, or is not a file of parameters ({error}); save the model again"
            ) from error
    if size > most:
        raise ValueError(
            f"{path} belongs to another model: it holds {size / 1e6:.1f} MB, more than this model's numbers take; make "
            f"the model with the settings it was saved with"
        )
    if tag != FORMAT:
        raise ValueError(f"{path} was not written by checkpoints.save (format {tag!r}, expected {FORMAT!r})")
    missing = ", ".join(sorted(params.keys() - arrays.keys()))
    extra = ", ".join(sorted(arrays.keys() - params.keys()))
    if missing or extra:
        raise ValueError(
            f"{path} belongs to another model: missing {missing or 'nothing'}; not in the model: {extra or 'nothing'}; "
            f"make the model with the settings it was saved with"
        )
    for name, param in params.items():
        stored_, wanted = arrays[name], param.value
        if (stored_.shape, stored_.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(
                f"{path} belongs to another model: {name} is {stored_.dtype} of shape {stored_.shape}, the model has "
                f"{wanted.dtype} of shape {wanted.shape}; make the model with the settings it was saved with"
            )
        if not np.isfinite(stored_).all():
            raise ValueError(f"{path}: {name} holds NaN or infinite values; save a model that has none")
    for name, param in params.items():
        if param.value.flags.writeable:
            param.value[...] = arrays[name]  # in place: an optimizer may be holding the array
        else:  # a model that was made without numbers
            param.value = arrays[name]
