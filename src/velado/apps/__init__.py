"""The doors people use: parse, call, show. No logic of their own."""
