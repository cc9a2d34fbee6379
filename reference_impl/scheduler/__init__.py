"""The gang scheduler: snapshot, fit, binding."""
