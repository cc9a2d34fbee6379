"""`python -m reference_impl`."""

from reference_impl.cli import main

main()
