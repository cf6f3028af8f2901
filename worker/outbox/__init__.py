"""The product's sentence, one verb a file: enqueue, trigger, claim, send, complete, receipt, sweep."""
