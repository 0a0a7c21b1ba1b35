"""The predictions and the checkpoint questions of notebook 11."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "unseen",
        ("1 in 1,000", "1 in 200", "1 in 20"),
        right="1 in 20",
        happened="New names, rare forms and the words of a new topic never stop coming.",
    ),
    Prediction(
        "commonest",
        ("e, blank", "t, h", "blank, blank"),
        right="blank, blank",
        happened="The text is full of indented code. Byte-pair encoding counts what is there, not what we call language.",
        usual="t, h",
    ),
    Prediction(
        "one_piece",
        ("they fall", "they stay about the same", "they rise"),
        right="they fall",
        happened="One piece holds several characters, so the table looks further back.",
    ),
    Prediction(
        "better",
        ("the first", "the second", "these numbers can't say"),
        right="these numbers can't say",
        happened="A token of one character and a token of three are different units. Bits a character can be compared.",
        usual="the first",
    ),
    Prediction(
        "counting",
        ("about 60 %", "about 80 %", "about 100 %"),
        right="about 60 %",
        happened="It has met too few of the pieces. Always to say 0 would be right nearly as often.",
    ),
    Prediction(
        "language",
        ("Finnish", "Greek", "Hindi", "Chinese"),
        right="Hindi",
        happened="A character of Hindi takes three bytes, and the tokenizer has learned few merges for them.",
    ),
    Prediction(
        "walls",
        ("they rise", "they stay about the same", "they fall"),
        right="they fall",
        happened="Each merge is spent on a word or a part of one, and none on a word together with its comma.",
    ),
)

QUESTIONS = (
    Question(
        "A text is a a a a a, and the pair (a, a) is merged into b. What comes out?",
        (
            Option("b b b b", "These are all pairs that overlap. An id that was merged is used up."),
            Option("b b a", "From left to right: two pairs, and the last a has no partner.", right=True),
            Option("a b b", "This merges from the right. Merging goes from left to right."),
            Option("b a a a", "This is only the first pair. One merge replaces the pair everywhere in the text."),
        ),
    ),
    Question(
        "Why are merges carried out in the order in which they were learned?",
        (
            Option(
                "So that frequent words are found faster.",
                "The order is no matter of speed. It decides which pieces come out.",
            ),
            Option(
                "So that the text can be decoded.",
                "Decoding writes the pieces one after the other. It works for any cut.",
            ),
            Option(
                "A later merge joins pieces that earlier ones made.",
                "“t” and “he” can be merged only when “he” is there. The same order cuts a new text as the training text was cut.",
                right=True,
            ),
            Option(
                "Every order gives the same pieces, so one was chosen.",
                "With (e, r) before (h, e), “her” is h | er; the other way round it is he | r.",
            ),
        ),
    ),
    Question(
        "On the same text, model A pays 3.0 bits a token, at 4 characters a token. Model B reads characters and pays 1.0 bit for each. Which predicts better?",
        (
            Option("A", "A pays 3.0 / 4 = 0.75 bits a character, and B pays 1.0.", right=True),
            Option("B", "B pays less for each of its tokens, but it has four times as many of them."),
            Option("They are equally good.", "Divide by characters: 0.75 bits against 1.0."),
            Option(
                "Their losses can't be compared in any way.",
                "Bits a token can't be compared, but bits a character can: it is the same text.",
            ),
        ),
    ),
    Question(
        "A model gets “berry” as one token. What does the id of this token tell it about the letters?",
        (
            Option(
                "That there are five of them.",
                "An id is the number of a row in a table. Its size says nothing about the length of the piece.",
            ),
            Option(
                "Which merges made it.",
                "The tokenizer knows the merges. The model gets the id alone.",
            ),
            Option(
                "All of them, by the id's digits.",
                "Ids are given in the order of the merges. Their digits say nothing about letters.",
            ),
            Option(
                "Nothing; it must be learned.",
                "The spelling of each piece is a fact of its own, and models do learn many of these facts from text.",
                right=True,
            ),
        ),
    ),
)
