"""`fairlead up`: the whole embedded platform as one supervised family of processes."""
