"""A published chatbot, SmolLM2-135M-Instruct, in the course's own model: `pretrained.load()`.

- `llama`: from a file into `models.GPT`, and text from it, token by token
- `tokenizer`: text to ids and back
- `gguf`: the file's format

`python -m lesson_utils.maths.pretrained` fetches the model, 98 MB. The rest of the course does without it.
"""

from lesson_utils.maths.pretrained.gguf import Reader
from lesson_utils.maths.pretrained.llama import Pretrained, Token, find, install, load
from lesson_utils.maths.pretrained.tokenizer import Tokenizer

__all__ = ["Pretrained", "Reader", "Token", "Tokenizer", "find", "install", "load"]
