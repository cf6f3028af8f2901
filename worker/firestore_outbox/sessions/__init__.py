"""The hot set, carried out: whose sessions are up. Theory in docs/sessions.md; the decisions are in worker/domain.

hotset     what others want of it: a session, to be done with one, to doubt one
handler    the lane of one session: orders it up and down, and looks at it
"""
