"""Where chunks, links and the ledger live, behind ports."""
