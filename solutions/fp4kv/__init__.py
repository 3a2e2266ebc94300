"""fp4kv: the reference library of the course."""
