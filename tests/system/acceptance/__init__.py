"""The acceptance tests A to G, over real processes. A package: one stack serves all its modules."""
