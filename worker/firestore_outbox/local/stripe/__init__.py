"""A stand-in for Stripe on a laptop.

shapes  objects and events as Stripe's API writes them, as far as billing reads them
api     the calls that billing makes, two pages in the place of Stripe's, and the events that follow
"""
