"""What others write to an account: stored once, shown in its thread, and handed on when the conversation is quiet."""
