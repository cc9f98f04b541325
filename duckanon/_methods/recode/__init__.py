"""Local recoding: classes of at least k people, each with labels of its own that lose as little as can be."""
