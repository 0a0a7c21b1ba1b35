"""A published model in the course's own: SmolLM2-135M-Instruct by `load()`, or one from your disk by `load(path)`.

- `model`: from a file into `models.GPT`, and text from it, token by token
- `architectures`: Llama, Qwen2 and GPT-2 as layers of ours
- `tokenizer`: text to ids and back
- `gguf`, `folder`: the two formats of files; `arrays`: what they have in common
- `smollm2`: where the default model is

`python -m lesson_utils.maths.pretrained` fetches the model, 98 MB. The rest of the course does without it.
"""

from lesson_utils.maths.pretrained.gguf import Reader
from lesson_utils.maths.pretrained.model import Pretrained, Token, load
from lesson_utils.maths.pretrained.smollm2 import find, install
from lesson_utils.maths.pretrained.tokenizer import Tokenizer

__all__ = ["Pretrained", "Reader", "Token", "Tokenizer", "find", "install", "load"]
