"""What every part of the runtime uses: requests, datatypes, errors, the side thread."""
