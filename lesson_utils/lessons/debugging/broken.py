"""The clinic's patients: small GPTs with a bug of the catalogue, or one in their loss, targets, cache or training."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lesson_utils.lessons import bugs
from lesson_utils.maths import layers, models, ops
from lesson_utils.maths.checks import Array, Ids
from lesson_utils.maths.layers import KeyValueCache
from lesson_utils.maths.models.gpt import GPTCache


class CountsCalls(KeyValueCache):
    """A cache that counts calls, not positions: after a prompt of T tokens it writes on at place 1."""

    def append(self, K: Array, V: Array) -> tuple[Array, Array]:
        found = super().append(K, V)
        self.length -= K.shape[-2] - 1
        return found


class Patient(models.GPT):
    """A GPT that may be wrong from the loss on, in its cache, or in how it is trained and used."""

    softmax_first = False  # the loss gets probabilities, and takes them for logits
    shifted = True  # the targets are the next symbols
    cache: type[KeyValueCache] = KeyValueCache
    top_left = False  # behind a cache, the causal mask begins at the first key
    noise: np.random.Generator | None = None  # dropout draws from it, also where nothing is trained
    parts = 1  # a batch in so many parts, whose losses are added up and not divided by their number
    repeats = False  # the same batch in each step of training

    def forward(
        self, ids: ArrayLike, past: Any = None, rng: Any = None, mask: ArrayLike | None = None, last: bool = False
    ) -> tuple[Array, GPTCache]:
        if self.top_left and past and mask is None:
            T = np.shape(ids)[1]
            mask = np.tri(T, past[0].length + T, dtype=bool)
        return super().forward(ids, past, rng or self.noise, mask, last)

    def loss(self, batch: Any) -> float:
        return sum(self._loss(part) for part in self._parts(batch))

    def _loss(self, batch: Any) -> float:
        logits, _ = self.forward(batch[0])
        return ops.cross_entropy_forward(self._outputs(logits), self._targets(batch))[0]

    def loss_and_grad(self, batch: Any, rng: Any = None) -> float:
        return sum(self._loss_and_grad(part, rng) for part in self._parts(batch))

    def _parts(self, batch: Any) -> list[Any]:
        return list(zip(*(np.array_split(np.asarray(ids), self.parts) for ids in batch), strict=True))

    def _loss_and_grad(self, batch: Any, rng: Any) -> float:
        logits, (tokens, stack, output) = self.forward(batch[0], rng=rng)
        given = self._outputs(logits)
        loss, cross = ops.cross_entropy_forward(given, self._targets(batch))
        dlogits = ops.cross_entropy_backward(1.0, cross)
        if self.softmax_first:
            dlogits = ops.softmax_backward(dlogits, given)
        dx = self.tokens.embedding.logits_backward(dlogits, output)
        self.tokens.backward(self.stack.backward(dx, stack), tokens)
        return loss

    def _targets(self, batch: Any) -> Ids:
        return np.asarray(batch[1] if self.shifted else batch[0])

    def _outputs(self, logits: Array) -> Array:
        return ops.softmax(logits) if self.softmax_first else logits

    def new_past(self, keep: int | None = None) -> list[KeyValueCache]:
        return [self.cache(self.config.max_length, keep) for _ in self.stack.blocks]


DROPPING = "dropout left on"
OF_PATIENTS: dict[str, tuple[str, Any]] = {  # bugs that only a `Patient` can have
    "softmax twice": ("softmax_first", True),
    "targets not shifted": ("shifted", False),
    "cache counts calls": ("cache", CountsCalls),
    "mask from the first key": ("top_left", True),
    "losses added up": ("parts", 2),
    "the same batch again": ("repeats", True),
    DROPPING: ("noise", None),  # a generator for each model, see `plant`
}


def plant(model: layers.Layer, bug: str) -> None:
    """Put a bug into a model, everywhere where it can be. A bug of `OF_PATIENTS` leaves other models as they are."""
    bugs.plant(model, "")  # right heads by the same code: patients differ in their bug alone, not in rounding
    if bug not in OF_PATIENTS:
        bugs.plant(model, bug)
    elif isinstance(model, Patient):
        name, value = OF_PATIENTS[bug]
        setattr(model, name, np.random.default_rng(0) if bug == DROPPING else value)


def patient(bug: str, vocab: int, seed: int = 0, **sizes: Any) -> Patient:
    """Make a small GPT with a bug; "" is a healthy one. The same seed, the same parameters."""
    chosen: dict[str, Any] = {"d_model": 32, "num_heads": 4, "num_layers": 2, "max_length": 64} | sizes
    if bug == "groups tiled":
        chosen["num_kv_heads"] = 2
    if bug == "rotary pairs":
        chosen["positions"] = "rotary"
    if bug == DROPPING:
        chosen["dropout"] = 0.1
    model = Patient(models.GPTConfig(vocab=vocab, **chosen), np.random.default_rng(seed))
    plant(model, bug)
    return model


def twin(model: Patient) -> Patient:
    """Make a model of right code with the same parameters."""
    right = Patient(model.config, rng=None)
    for name, param in right.params().items():
        param.value = model.params()[name].value
    return right
