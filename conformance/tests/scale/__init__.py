"""A PodCliqueSet with a thousand pods."""
