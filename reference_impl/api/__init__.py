"""Typed models of the Grove kinds, and the CRDs generated from them."""
