"""Claims of jobs: taken, renewed, ended."""
