"""Mistakes that were seen in public: their names, what came of them, and the issue or pull request that says so."""

PUBLISHED = (
    (("no scale", "not scaled"), "a repository for teaching", "PAIR-code/tiny-transformers#71"),
    (("mask inverted", "inverted"), "a notebook of a well-known book let every token see the future", "rasbt/LLMs-from-scratch#1061"),
    (("mask ignored", "no mask"), "nothing to be seen for 500 steps, then the perplexity fell to almost nothing", "mosaicml/examples#38"),
    (("numbers to add",), "a 0/1 mask was expected, so everything allowed was hidden", "harvard-edge/cs249r_book#1785"),
    (("transposed",), "PyTorch's tutorial, between two versions", "pytorch/tutorials#719"),
    (("queries counted from the start",), "a server hid the whole conversation from each new message", "hyprstream/hyprstream#1521"),
    (("merged without a swap", "reshaped without a swap", "merged by reshape"), "a small Transformer written for teaching learnt its copy task all the same", "jsbaan/transformer-from-scratch#6"),
    (("keys tiled",), "the first text of ONNX's standard for grouped heads", "onnx/onnx#7274"),
    (("the stream is normed",), "PyTorch's own Transformer layer", "pytorch/pytorch#61165"),
    (("positions for the batch",), "trained models came out worse, and nothing failed", "IBM/TabFormer#14"),
    (("columns left as they are", "halves for pairs"), "a chatbot's first word was right, all others were not", "NeuraLegion/shainet#111"),
    (("sign of the exponent",), "the formulas of a library for fast attention", "deepseek-ai/FlashMLA#177"),
    (("maximum of the tile",), "a macro for many attention kernels", "tile-ai/TileOPs#239"),
)  # fmt: skip
