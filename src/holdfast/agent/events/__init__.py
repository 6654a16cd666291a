"""Events as readers get them: from the ledger, from a number on, and as they come."""
