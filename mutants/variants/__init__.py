"""Variants: deliberate differences from the reference that the contract permits.

The suite MUST judge each of them conformant; they guard it against rejecting other implementations.
`python -m mutants.prove --variant NAME` proves that the requirements of a variant pass.
"""
