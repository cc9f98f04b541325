"""Code that methods and measures share."""
