"""`fairlead up`: the whole embedded platform as one supervised process tree."""
