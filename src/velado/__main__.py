"""`python -m velado` is the command line."""

from velado.apps.cli import main

if __name__ == "__main__":
    main()
