"""Files that commands read: documents, and what is uploaded."""
