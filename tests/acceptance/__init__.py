"""The acceptance tests A to G, over real processes. A package, so that one stack serves all its modules and then ends."""
