"""What can be called: how a tool is declared, the contracts it must keep, the catalog it is found in."""
