"""The objects of a PodCliqueSet: their specs, statuses and pods."""
