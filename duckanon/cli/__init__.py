"""The command ``duckanon``: scripts, one-liners and an interactive shell with every function registered."""
