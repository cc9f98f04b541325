"""Methods to compare a release with: independent columns, noise, and normal copulas."""
