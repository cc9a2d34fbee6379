"""What a PodCliqueSet becomes."""
