"""The objects of a PodCliqueSet other than its pods: accounts and roles, autoscalers, resource claims, topology."""
