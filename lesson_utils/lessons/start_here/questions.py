"""The predictions and the checkpoint question of notebook 00."""

from lesson_utils.classroom.quiz import Option, Prediction, Question

PREDICTIONS = (
    Prediction(
        "tired",
        ("it", "cat", "street"),
        right="cat",
        happened="“Tired” describes an animal, so the cat gets the largest weight.",
    ),
    Prediction(
        "wide",
        ("still the cat", "street", "wide"),
        right="street",
        happened="One other word at the end of the sentence moves the largest weight to the street.",
    ),
)

QUESTIONS = (
    Question(
        "Weights of 0.5, 0.3 and 0.2 average the numbers 10, 20 and 40. What comes out?",
        (
            Option("23.33", "That is the plain mean, (10 + 20 + 40) / 3. The weights say how much each number counts."),
            Option("19", "0.5 · 10 + 0.3 · 20 + 0.2 · 40 = 5 + 6 + 8 = 19.", right=True),
            Option("70", "That is the plain sum. Multiply each number by its weight first."),
            Option("10", "That is the number with the largest weight. The other two count as well, only less."),
        ),
    ),
)
