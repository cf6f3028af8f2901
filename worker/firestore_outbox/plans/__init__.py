"""Plans: how many messages an account may send, in total, a day or a month (docs/plans.md).

plan     the limits of each plan, and what a count allows
usage    the counts
"""
