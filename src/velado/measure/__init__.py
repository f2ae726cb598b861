"""What it cost, what it bought: utility and risk of a release, measured on the published values."""
