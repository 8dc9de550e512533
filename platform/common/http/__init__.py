"""What every view needs of Django and REST framework: errors, pagination, parsers, request ids."""
