"""A PodCliqueSet of a thousand pods."""
