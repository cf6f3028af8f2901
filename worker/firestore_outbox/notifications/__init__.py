"""What an account's owner gets to know without looking: a run has ended, or its window has closed."""
