"""A Transformer's parameters and FLOPs by formula, and Table 3 of the paper."""

from dataclasses import replace
from typing import Any

from lesson_utils.lessons.full_block.ledger import Step
from lesson_utils.maths import costs
from lesson_utils.maths.models import TransformerConfig


def count(config: TransformerConfig, length: int = 1, **changes: Any) -> dict[str, Step]:
    """Compute the ledger of a whole encoder–decoder by formula, for a source and a target of `length` symbols (B = 1).

    It says the same as the layers themselves, without building them. `changes` are to the config.
    """
    config = replace(config, **changes)
    c, d, h, N, T = config, config.d_model, config.num_heads, config.num_layers, length
    attend, think = costs.attention_cost(T, d, h), costs.feed_forward_cost(T, d, c.ff_width)
    wide = think.parameters + c.ff_width + d  # and the biases
    tables = 1 if c.shared else 2
    top = 2 * d if c.norm == "pre" else 0  # one more norm at the top
    norm = 0 if c.norm == "none" else 2 * d
    target_vocab = c.target_vocab or c.vocab
    table = c.vocab * d + (tables - 1) * target_vocab * d
    steps = (
        Step("token table", (T, d), table, 0),
        Step("encoder: self-attention", (h, T, T), N * attend.parameters, N * attend.flops),
        Step("encoder: feed-forward", (T, c.ff_width), N * wide, N * think.flops),
        Step("encoder: norms", (T, d), N * 2 * norm + top, 0),
        Step("decoder: self-attention", (h, T, T), N * attend.parameters, N * attend.flops),
        Step("decoder: cross-attention", (h, T, T), N * attend.parameters, N * attend.flops),
        Step("decoder: feed-forward", (T, c.ff_width), N * wide, N * think.flops),
        Step("decoder: norms", (T, d), N * 3 * norm + top, 0),
        Step("output scores", (T, target_vocab), 0, 2 * T * d * target_vocab),
    )
    return {step.name: step for step in steps}


def count_parameters(config: TransformerConfig, **changes: Any) -> int:
    """Return the parameters of a whole encoder–decoder."""
    return sum(step.parameters for step in count(config, **changes).values())


# Table 3 of the paper: what differs from the base model, and how many million parameters are given.
PAPER_ROWS: dict[str, tuple[dict[str, int], int]] = {
    "base": ({}, 65),
    "N = 2": ({"num_layers": 2}, 36),
    "N = 4": ({"num_layers": 4}, 50),
    "N = 8": ({"num_layers": 8}, 80),
    "d_model = 256": ({"d_model": 256}, 28),
    "d_model = 1024": ({"d_model": 1024}, 168),
    "d_ff = 1024": ({"d_ff": 1024}, 53),
    "d_ff = 4096": ({"d_ff": 4096}, 90),
    "big": ({"d_model": 1024, "num_heads": 16, "d_ff": 4096}, 213),
}


def vocabulary_for(changes: dict[str, int], millions: int) -> tuple[float, float]:
    """Return how many symbols one shared table must hold, from and to, for a count that rounds to `millions`."""
    one, two = (count_parameters(TransformerConfig.base(vocab), **changes) for vocab in (1, 2))
    row = two - one  # the numbers of one symbol
    return (1e6 * (millions - 0.5) - one) / row + 1, (1e6 * (millions + 0.5) - one) / row + 1
