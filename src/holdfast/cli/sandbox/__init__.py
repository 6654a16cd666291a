"""`holdfast try`: any router file, in a throwaway world with stand-ins for NICs and provider."""
