"""Whole models: a config dataclass each, a loss with gradients, generation, and attention maps from the same pass."""

from lesson_utils.models.gpt import GPT, GPTConfig
from lesson_utils.models.sampling import distribution, sample
from lesson_utils.models.seq2seq import Seq2Seq, Seq2SeqConfig
from lesson_utils.models.transformer import Encoder, EncoderConfig, Transformer, TransformerConfig
