"""The registry: requirements, what they rest on, and what readers learn about them. Needs no cluster."""
