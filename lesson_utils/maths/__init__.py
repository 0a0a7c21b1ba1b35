"""The maths: attention and Transformers in NumPy, a library that knows nothing of the course."""
