"""Graphs whose nodes are classified."""
