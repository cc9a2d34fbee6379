"""Turn a ledger into a verdict, and write it as report.yaml, JUnit, web page and terminal output."""
