"""The border to the providers: a message in, an outcome out; a webhook in, events out.

    protocol      what every provider declares and does
    parts         the parts of one message, one after the other: the only loop over parts
    credentials   secrets, where they come from, and that they are never shown
    http          calls, and which of their failures prove that nothing was processed
    pool          the connections under them
    answers       an HTTP answer read with care; redaction, which keeps people's words and our secrets out of errors
    signature     webhooks signed with their time; body_signature, those signed without
    phone         international numbers and their country codes
    simulated     the adapter for our own provider simulator
    event_envelope    the webhooks of our own form: the simulator's, and those of receivers of signed webhooks
    …             the adapters: one file a provider, with its codes and its webhook beside it
    registry      all of them by name

Nothing outside of this package names a provider. What differs between two of them is declared in a `Profile`.
"""
