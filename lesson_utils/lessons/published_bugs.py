"""Where a mistake was published: by the mistake's name, what came of it, and the issue or pull request that says so."""

_SWAP = (
    "a small Transformer written for teaching learnt its copy task all the same",
    "jsbaan/transformer-from-scratch#6",
)
_HIDDEN = ("trained models came out worse, and nothing failed", "IBM/TabFormer#14")
_INVERTED = ("a notebook of a well-known book let every token see the future", "rasbt/LLMs-from-scratch#1061")
_EMPTY_MASK = (
    "nothing to be seen for 500 steps, then the perplexity fell to almost nothing",
    "mosaicml/examples#38",
)
_NO_SCALE = ("a repository for teaching", "PAIR-code/tiny-transformers#71")
_STREAM = ("PyTorch's own Transformer layer", "pytorch/pytorch#61165")
_HALVES = ("a chatbot's first word was right, all others were not", "NeuraLegion/shainet#111")

PUBLISHED: dict[str, tuple[str, str]] = {
    # attention, masks
    "no scale": _NO_SCALE,
    "not scaled": _NO_SCALE,
    "mask inverted": _INVERTED,
    "inverted": _INVERTED,
    "mask ignored": _EMPTY_MASK,
    "no mask": _EMPTY_MASK,
    "numbers to add": ("a 0/1 mask was expected, so everything allowed was hidden", "harvard-edge/cs249r_book#1785"),
    "transposed": ("PyTorch's tutorial, between two versions", "pytorch/tutorials#719"),
    "queries counted from the start": (
        "a server hid the whole conversation from each new message",
        "hyprstream/hyprstream#1521",
    ),
    # heads
    "merged without a swap": _SWAP,
    "reshaped without a swap": _SWAP,
    "merged by reshape": _SWAP,
    "keys tiled": ("the first text of ONNX's standard for grouped heads", "onnx/onnx#7274"),
    # blocks, positions
    "the stream is normed": _STREAM,
    "along the batch axis": _HIDDEN,
    "positions for the batch": _HIDDEN,
    "columns left as they are": _HALVES,
    "halves for pairs": _HALVES,
    # softmax in pieces, losses
    "sign of the exponent": ("the formulas of a library for fast attention", "deepseek-ai/FlashMLA#177"),
    "maximum of the tile": ("a macro for many attention kernels", "tile-ai/TileOPs#239"),
    "log of 0": ("the cell crashed for years, and many asked", "harvardnlp/annotated-transformer#109"),
}
