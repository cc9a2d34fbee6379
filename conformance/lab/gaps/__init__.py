"""The needs of inference in gang scheduling, measured on several schedulers and APIs."""
