"""Firestore's security rules as a library: parse, check, compile and decide. Nothing here knows the server around it.

    ruleset = compile_rules(source)                # RulesRejected carries the errors with their lines and columns
    verdict = decide(ruleset, question)            # Allowed or Denied; a Denied explains itself

Google publishes no grammar. What a construct means here is what Google's emulator does with it; the differential test
asks both. An error is a third value beside true and false: `&&` and `||` absorb it, everything else passes it on, and a
condition that ends in an error refuses.
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
