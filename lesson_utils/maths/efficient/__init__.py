"""Attention for long sequences: sparse masks, linear attention, and the online softmax."""

from lesson_utils.maths.efficient.linear import elu_feature_map, linear_attention
from lesson_utils.maths.efficient.online_softmax import online_attention
from lesson_utils.maths.efficient.sparse_masks import block_mask, global_mask, reach, strided_mask, window_mask
