"""`python -m clearway`: the command."""

from clearway._cli import main

if __name__ == "__main__":
    main()
