"""``python -m duckanon.cli`` is the command ``duckanon``."""

import sys

from duckanon.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
