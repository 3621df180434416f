"""Layers joined for a task."""
