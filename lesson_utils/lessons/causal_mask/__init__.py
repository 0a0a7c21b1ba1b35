from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    6,
    "Causal mask",
    "How do you train on the future without looking at it?",
    exercises=(
        "causal_mask",
        "leak_test",
        "text_loss",
        "gpt",
        "sampling_probabilities",
        "decode_step",
    ),
)
