"""Files that commands read: documents, and uploads."""
