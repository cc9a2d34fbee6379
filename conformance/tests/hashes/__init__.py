"""Template hashes: changes without meaning change no hash and restart nothing, changes with meaning do."""
