"""What a submission shows to people, with nothing live in it."""
