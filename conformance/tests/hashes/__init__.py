"""Template hashes. A change without effect changes no hash and restarts nothing; a change with an effect does both."""
