"""From a repaired notebook to a verdict: kernel, calls, checks, statuses."""
