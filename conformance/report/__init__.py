"""From a ledger to a verdict, report.yaml, JUnit and the terminal."""
