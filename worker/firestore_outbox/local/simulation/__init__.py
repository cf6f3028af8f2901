"""The production code under a faulty world, in virtual time, by a seed: `outbox sim`.

processes   simulated processes that pause, and die at any await
network     what is lost, doubled and late between them
world       the engines, the provider, the workers and functions, put together
scenario    what people, clients and bad luck do in one run, drawn from the seed
truth       what really happened: every change of a document, every call to the provider
checks      what must hold of it, whatever happened
run         one seed, many seeds, the report
"""
