"""Billing: the plan that an account pays for, by Stripe (docs/billing.md).

prices    which plans are for sale, and at which of Stripe's prices
standing  what Stripe reported of an account's subscriptions, and the plan that follows from it
events    Stripe's events, read
stripe    calls to Stripe, and its signatures, by Stripe's own library
books     the documents: which customer belongs to which account, and what was reported
billing   the verbs: a link to pay, a link to manage, an event taken
"""
