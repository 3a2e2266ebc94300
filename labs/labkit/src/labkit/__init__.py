"""What a student's notebook may import: formats, plots, given parts and the student's own check."""
