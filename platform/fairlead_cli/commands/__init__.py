"""Commands, one module per noun; `parser/command_table.py` lists them all."""
