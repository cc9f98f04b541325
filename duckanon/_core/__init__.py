"""What methods and measures share."""
