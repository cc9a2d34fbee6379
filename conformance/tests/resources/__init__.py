"""What a PodCliqueSet has beside its pods: accounts and roles, autoscalers, resource claims, topology."""
