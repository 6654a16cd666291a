"""How a spec is declared, read and described."""
