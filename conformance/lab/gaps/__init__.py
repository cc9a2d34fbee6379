"""What inference needs of gang scheduling, measured on several schedulers and APIs."""
