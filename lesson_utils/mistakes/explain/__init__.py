"""Explain a wrong result by measurements, where no mistake was recognised."""
