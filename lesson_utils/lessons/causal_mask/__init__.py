from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    6,
    "Causal mask",
    "How do you train on the future without looking at it?",
    exercises=("causal_mask", "masked_attention", "sampling_probabilities", "decode_step", "gpt"),
)
