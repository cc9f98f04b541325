"""Code that every package uses: options, progress, threads, codes, values and their labels."""
