"""Files that people write: their reader, quantities in them, their editor on pages, plans of applying one."""
