"""Which values of a column may be released, and how numbers are drawn from them."""
