"""What an attacker can still do with a release.

`reidentification` is the chance to pick the right person out of a class, `uniqueness` counts people who stand
alone, `class_sizes` shows how large the crowds are, and `record_linkage` runs an attack by distance.
"""
