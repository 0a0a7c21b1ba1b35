"""An argument that nobody gives is what papers and PyTorch have; the notebooks' numbers rest on it."""

import importlib
import inspect
import pkgutil

from lesson_utils import maths

MASKS = dict(causal=False, pad=0, bos=1, eos=2, value=0, start=0, window=0, block_size=128)
FORMULAS = dict(axis=-1, temperature=1.0, smoothing=0.0, eps=1e-5, eps_inside_root=True, base=10_000.0, scale=1.0)
MEMORIES = dict(decay=1.0, overwrite=False, rate=1.0)
MODELS = dict(d_model=64, num_heads=4, num_layers=2, max_length=512, dropout=0.0, bias=True, skip=True, directions=())
MODELS |= dict(d_embed=32, d_hidden=64, outputs=1, pooled=False, shared=False, vocab=37_000, params=())
USE = dict(last=False, use_cache=True, packed=False, transposed=False, special=False, bidirectional=False)
TASKS = dict(T=24, k=4, batch=64, shortest=3, longest=20, num_symbols=26, validation=0.1, held_out=False)
TRAINING = dict(lr=1e-3, betas=(0.9, 0.999), weight_decay=0.0, momentum=0.0, clip=1.0, every=1, seed=0)
TRAINING |= dict(progress=True, one_thread=True, seconds=0.0, samples=20, tolerance=1e-6)
CHECKS = dict(min_ndim=0, minimum=1, bits=16, local_layers=0, gates=1)
USUAL = MASKS | FORMULAS | MEMORIES | MODELS | USE | TASKS | TRAINING | CHECKS
OTHER = {
    "Adam": {"eps": 1e-8},
    "GPTConfig": {"max_length": 64},
    "Pretrained.stream": {"temperature": 0.0},
    "Seq2SeqConfig": {"bidirectional": True},
    "TransformerConfig": {"causal": True},
    "check_params": {"tolerance": 1e-5},
    "gather": {"num_symbols": 20},
    "load": {"max_length": 1024},
    "read_text": {"minimum": 1000},
}


def with_defaults():
    """Yield every function, method and class of the maths that has a default, with its defaults that are no None."""
    for info in pkgutil.walk_packages(maths.__path__, f"{maths.__name__}."):
        for name, thing in vars(importlib.import_module(info.name)).items():
            if getattr(thing, "__module__", None) != info.name or not callable(thing):
                continue
            methods = [f"{name}.{inner}" for inner in vars(thing)] if inspect.isclass(thing) else []
            for found in (name, *(method for method in methods if not method.partition(".")[2].startswith("__"))):
                value = getattr(thing, found.partition(".")[2]) if "." in found else thing
                if inspect.isfunction(value) or inspect.ismethod(value) or inspect.isclass(value):
                    yield found, defaults(value)


def defaults(function):
    """Return a function's defaults that are numbers, or several of them."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except ValueError:  # an exception's class, say
        return {}
    return {one.name: one.default for one in arguments if isinstance(one.default, bool | int | float | tuple)}


FOUND = {name: given for name, given in with_defaults() if given}


def test_what_is_left_out_has_its_usual_value():
    assert len(FOUND) > 50
    assert OTHER.keys() <= FOUND.keys()
    for name, given in FOUND.items():
        usual = USUAL | OTHER.get(name, {})
        assert given == {argument: usual[argument] for argument in given}, name
