"""Tasks that the models learn: small ones made up on the spot, and a text that comes with the course.

Each task is a function that draws a batch from a `Generator`. Tokens are whole numbers; 0, 1 and 2 are padding, begin
and end, and symbols follow from 3 on. A model that knows `num_symbols` symbols has a vocabulary of `num_symbols` + 3.
"""

from lesson_utils.maths.checks import Ids
from lesson_utils.maths.tasks.symbols import gather, reversal, reversal_batches, scattered_offsets
from lesson_utils.maths.tasks.text import (
    python_text,
    read_text,
    split_text,
    text_batches,
    text_vocabulary,
    unigram_entropy,
)
from lesson_utils.maths.tasks.vocabulary import BOS, EOS, FIRST_SYMBOL, PAD, Pair, Vocabulary, letters, pad, with_ends
from lesson_utils.maths.tasks.written_dates import (
    DATE_STYLES,
    FIRST_DAY,
    ISO,
    LAST_DAY,
    WRITTEN,
    date_pairs,
    dates,
    encode_dates,
    held_out,
    write_date,
)
