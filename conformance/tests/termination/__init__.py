"""Gang termination: what is below its minimum for too long is recreated, and nothing else."""
