"""The invariants, checked on what is stored: `outbox audit` on a live project, and the simulation after each run.

    lost        nothing due waits without a worker that will look at it                             documents.py, lanes
    lease       no lease outlives its end by more than a few sweeps, of a lane or of a claim        documents.py, lanes
    agreement   people see of a message what its outbox document says                               documents.py
    shape       a document in a state has what belongs to that state, and nothing of another        documents.py
    order       no message of a thread was sent before one that was due before it                   history.py
    pace        no cap was exceeded, of an account or a recipient                                   history.py
    overlap     no document became visible later than a page can allow for                          gaps.py
    counts      what a run that ended says of its targets adds up                                   runs.py

It reads everything once and writes nothing. While workers run, documents change between two reads; what looks wrong is
therefore looked at again before it is called a finding. What single calls did no document tells: that a claim makes one
call, and that nothing is sent twice, is for the simulation to show, which sees the provider's side too.
"""
