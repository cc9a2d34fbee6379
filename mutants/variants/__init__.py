"""Variants: deliberate differences from the reference that the contract permits.

The suite MUST judge each variant conformant; variants guard the suite against rejecting other implementations. `python
-m mutants.prove --variant NAME` proves that the requirements of a variant pass.
"""
