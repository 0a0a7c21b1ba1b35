"""The classroom: what notebooks show and keep. It uses the maths and the engine, never the reverse."""
