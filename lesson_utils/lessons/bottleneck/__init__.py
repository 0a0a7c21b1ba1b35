from lesson_utils.classroom.course import Lesson

LESSON = Lesson(1, "The bottleneck", "What does one vector lose?", exercises=("additive_score", "context_vector"))
