"""Whole models: a config dataclass each, a loss with gradients, generation, and attention maps from the same pass.

Experiments on a model (heads knocked out, attention by another function) are made with `trying`.
"""

from lesson_utils.maths.models.encoder import Encoder, EncoderConfig
from lesson_utils.maths.models.experiments import trying
from lesson_utils.maths.models.gpt import GPT, GPTConfig
from lesson_utils.maths.models.sampling import distribution, sample
from lesson_utils.maths.models.seq2seq import Seq2Seq, Seq2SeqConfig
from lesson_utils.maths.models.transformer import Transformer, TransformerConfig
