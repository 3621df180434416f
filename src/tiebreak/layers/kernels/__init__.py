"""Kernels that run on a GPU, written in Triton."""
