"""Two steps before merging: bytes in place of characters, and cuts that no merge may cross."""

import re
from typing import TYPE_CHECKING

import numpy as np

from lesson_utils.maths import tasks

if TYPE_CHECKING:
    from lesson_utils.maths.checks import Ids

# As GPT-2 splits (Radford et al., 2019), in Python's own regular expressions: a word or a number with the blank before
# it, other signs, blanks. `[^\W\d_]` is a letter.
WORDS = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
# The first sentence of article 1 of the Universal Declaration of Human Rights (United Nations, 1948).
ARTICLE = {
    "English": "All human beings are born free and equal in dignity and rights.",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "Finnish": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan.",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "Chinese": "人人生而自由，在尊严和权利上一律平等。",
}
# How many tokens SmolLM2-135M's tokenizer makes of it; a test compares, where the model is installed.
SMOLLM_TOKENS = {"English": 13, "German": 24, "Finnish": 32, "Greek": 70, "Hindi": 92, "Chinese": 29}


def split(text: str, vocabulary: tasks.Vocabulary) -> "Ids":
    """Return the ids of a text with a wall, `tasks.PAD`, behind each word: what GPT-2 takes for one."""
    parts = [[*vocabulary.encode(word).tolist(), tasks.PAD] for word in WORDS.findall(text)]
    return np.array([id_ for part in parts for id_ in part], np.int64)


def to_bytes(text: str) -> "Ids":
    """Return the bytes of a text, as ids from 0 to 255."""
    return np.frombuffer(text.encode(), np.uint8).astype(np.int64)
