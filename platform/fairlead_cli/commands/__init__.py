"""The commands, one module per noun; `table.py` lists them all."""
