from lesson_utils.classroom.course import Lesson

LESSON = Lesson(
    1, "The bottleneck", "Why was one vector never enough?", exercises=("additive_score", "context_vector", "gru_step")
)
