"""Kernels that a student wrote in CUDA C: admitted, compiled and run in sandboxes of their own, never here."""
