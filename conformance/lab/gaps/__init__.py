"""What inference needs from gang scheduling, measured on several schedulers and APIs."""
