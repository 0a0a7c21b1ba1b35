from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    12,
    "From 2017 to a Llama",
    "What has changed since the paper?",
    exercises=("rms_norm", "swiglu", "rotary_halves", "grouped_attention", "llama_block"),
)
