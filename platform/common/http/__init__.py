"""HTTP plumbing of Django and REST framework: errors, pagination, parsers, request ids."""
