"""One file per command. Each function's parameters are its flags, and its docstring is its help."""
