"""What a release and a measure both ask: nearest rows, copies, and how a fresh sample would compare."""
