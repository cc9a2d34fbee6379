"""Profile `hashes`: what means nothing changes no hash and restarts nothing, what means something does."""
