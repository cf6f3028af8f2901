pytest_plugins = ["firestore_outbox.adapter_testing"]
