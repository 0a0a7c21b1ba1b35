"""The engine that names mistakes. It knows nothing of the course: an exercise brings what it needs."""
