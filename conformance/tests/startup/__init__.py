"""Start-up order: what each clique starts after, and that its pods do."""
