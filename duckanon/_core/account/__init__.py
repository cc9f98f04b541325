"""The account of what was given away before: a file that stays at home."""
