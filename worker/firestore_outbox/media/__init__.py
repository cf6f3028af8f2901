"""Files on their way to providers (docs/media.md).

storage     where files are: in a `directory` or in a `bucket`
files       a file in storage, within the limits, read once for many messages that need it at a time
uploads     a file at a provider, uploaded once for an account
delivery    what an adapter gets instead of the file: a handle, a URL or the bytes
"""
