"""The families of regression, by name: each one file with its mean, variance, deviance and words. Tests run over all of them."""

from collections.abc import Mapping

from velado.learning.regression.families._family import Family
from velado.learning.regression.families.linear import Linear
from velado.learning.regression.families.logistic import Logistic
from velado.learning.regression.families.poisson import Poisson

FAMILIES: Mapping[str, Family] = {one.name: one for one in (Linear(), Logistic(), Poisson())}
