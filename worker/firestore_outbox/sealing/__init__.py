"""Sealed messages: texts that Firestore, its backups, tasks and logs hold only as ciphertext.

envelope   one sealed part: its bytes, its binding to account, message and key version, and why one does not open
release    who unwraps a private key: Cloud KMS, or another provider in its place
keys       the key documents of an account: create, rotate, delete
service    opening messages for sending, for members and for handlers
"""
