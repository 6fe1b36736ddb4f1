"""``python -m tracer`` is ``foreshock``."""

from tracer.commands import main

if __name__ == "__main__":
    main()
