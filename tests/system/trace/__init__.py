"""One message from its event to `read`, and every file of the product in which a function ran on the way."""
