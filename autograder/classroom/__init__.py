"""A class: who is in it, what comes in, grading in parallel, reports, exports."""
