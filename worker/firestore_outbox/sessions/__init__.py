"""The hot set: which accounts' sessions are up (docs/sessions.md).

states, slots, requests, moves, memory   the decisions, all pure
hotset     requests of other lanes: need a session, be done with one, doubt one
handler    the lane of one session: starts, checks and stops it
store      the documents
"""
