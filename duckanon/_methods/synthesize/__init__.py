"""The release that is recommended: new records of values that many people share."""
