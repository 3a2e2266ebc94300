"""Faulty parts for the debug section of a lab, one module per lab: find the input that convicts each."""
