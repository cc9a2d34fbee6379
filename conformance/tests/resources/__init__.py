"""The objects of a PodCliqueSet beside its pods: accounts and roles, autoscalers, resource claims, topology."""
