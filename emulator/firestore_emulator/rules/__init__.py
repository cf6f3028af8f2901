"""Firestore's security rules: parse, check, compile and decide.

    ruleset = compile_rules(source)                # RulesRejected carries the errors with their lines and columns
    verdict = decide(ruleset, question)            # Allowed or Denied; a Denied explains itself

Google publishes no grammar: a construct means what Google's emulator does with it, and the differential test compares
the two. An error is a third value beside true and false: `&&` and `||` absorb it, everything else passes it on, and a
condition that ends in an error refuses.

Source to tree: grammar, tree, literals, ast; check, call_graph, walk. Tree to closures: compiler, scope, operands,
operators, calls. Values: values, arithmetic, text, constraints; methods and packages with containers, numbers, times
and hashing. Decisions: ruleset, matching, evaluation, decide, prove. Around them: coverage, explain, and for the server
guard, guard_queries, guard_values, enforce, identity, file.
"""

from firestore_emulator.rules.decide import Allowed, Denied, Question, Verdict, decide
from firestore_emulator.rules.ruleset import Issue, Ruleset, RulesRejected, compile_rules

__all__ = [
    "Allowed",
    "Denied",
    "Issue",
    "Question",
    "RulesRejected",
    "Ruleset",
    "Verdict",
    "compile_rules",
    "decide",
]
