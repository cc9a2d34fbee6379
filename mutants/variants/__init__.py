"""Variants: deliberate differences from the reference that the contract permits.

The suite MUST judge each variant conformant. Variants protect the suite from rejecting other correct implementations.
`python -m mutants.prove --variant NAME` proves that the requirements of a variant pass.
"""
