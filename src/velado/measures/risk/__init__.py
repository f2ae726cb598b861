"""What an attacker can still do with a release.

`reidentification` is the chance to pick the right person out of a class, `uniqueness` counts people who stand
alone, `class_sizes` shows how large the crowds are, and `record_linkage` runs an attack by distance;
`partial_linkage` does both for an attacker who knows only some columns. `attribute_disclosure` guesses sensitive
values from a class. `special_uniques` finds the few columns that already single a row out (SUDA2),
`population_uniqueness` estimates who is alone in the population too, and `individual_risk` gives every row its own
chance, by sampling weights where they are declared, for the private report only; `household_risk` is the chance that
somebody of a household is found. `disclosure` gathers them for the scores.
"""
