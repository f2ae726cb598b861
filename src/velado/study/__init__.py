"""Many runs, one decision: one run from recipe to report (`run`), methods side by side (`compare`), studies (`evaluate`)."""
