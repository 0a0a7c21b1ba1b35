"""The same losses and gradients as whole models in PyTorch, padding included."""

import numpy as np
import parity  # skips where PyTorch is missing
import pytest
from torch_twins import twin

from lesson_utils.maths.models import GPT, GPTConfig, Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig
from lesson_utils.maths.scores import SCORES

pytestmark = parity.marks
SIZES = {"d_model": 12, "num_heads": 3, "num_layers": 2, "d_ff": 10, "dtype": np.float64}
MODELS = {
    "GPT": (GPT, GPTConfig(vocab=9, **SIZES)),
    "encoder–decoder": (Transformer, TransformerConfig(vocab=9, target_vocab=8, **SIZES)),
} | {
    f"recurrent, {attention}": (Seq2Seq, Seq2SeqConfig(9, 8, attention, d_embed=5, d_hidden=6, dtype=np.float64))
    for attention in (None, *SCORES)
}


@pytest.mark.parametrize(("kind", "config"), MODELS.values(), ids=MODELS)
def test_a_whole_model(rng, kind, config):
    model = kind(config, rng)
    for param in model.params().values():
        param.value += 0.1 * rng.normal(size=param.value.shape)
    source, target = rng.integers(3, 9, size=(4, 7)), rng.integers(3, 8, size=(4, 7))
    if kind is not GPT:
        source[1, 3:] = source[2, 6:] = 0
        target = target[:, :6]
        target[:, 0] = 1
        target[3, 4:] = (2, 0)
    p, loss = twin(model)
    want = loss(source, target)
    want.backward()
    assert model.loss_and_grad((source, target)) == pytest.approx(float(want.detach()), rel=1e-9)
    for name, param in model.params().items():
        parity.same(param.grad, p[name].grad, np.float64, name)
