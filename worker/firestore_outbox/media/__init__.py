"""Files on their way to providers (docs/media.md).

shelf       what a place for files is; `directory` and `bucket` are the two
files       a file of the shelf, within the limits, read once for many that ask at a time
uploads     a file at a provider, uploaded once for an account whoever asks
desk        what a sender is handed instead of the file, by what its provider takes
"""
