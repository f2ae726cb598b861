"""What every method must obey, and random tables to try it on. For our tests and for authors of new methods."""
