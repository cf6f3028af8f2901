"""A message provider that follows its orders, wrong ones included, and keeps a true record of what it saw.

    faults       what may be ordered, and that nonsense is refused in words
    api          what one API is to the simulator: how it words what the core decides
    own          the simulator's own API; whatsapp_cloud and others beside it: real ones
    core         pure: a call in, a verdict out (what is answered, what is delivered, which receipts follow)
    record       the calls, in memory or in a file that survives a kill
    webhooks     receipts and inbound messages, signed and posted, with retries
    app          the HTTP side: the provider's own API and `/_sim`
    server       a port on this machine, whose connections can be cut
    inprocess    the same application without sockets, for virtual time
    simulator    all of it put together

Run it: `python -m emulator.providers --port 8083 --webhook 'http://127.0.0.1:8081/{provider}/{accountId}'`.
"""
