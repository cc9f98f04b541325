"""Cell suppression: as few single cells as possible become NULL, so that every record agrees with k - 1 others."""
