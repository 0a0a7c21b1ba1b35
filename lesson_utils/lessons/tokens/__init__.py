from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    11,
    "Tokens",
    "What does a model read, if neither letters nor words?",
    exercises=("merge_pairs", "learn_merges", "bits_per_character"),
)
