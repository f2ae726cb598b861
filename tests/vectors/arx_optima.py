"""Optima of full-domain generalization on Adult: the least loss, and levels that have it.

Source: the expected values in the JUnit tests of ARX 3.9.2 (commit aacd487fb77b), whose class and case number stand
beside each figure. Table and hierarchies: Adult as ARX ships it, 30,162 rows; quasi-identifiers in column
order sex, age, race, marital-status, education, native-country, workclass, (occupation,) salary-class;
occupation is the sensitive column except where it is a quasi-identifier. Delta-presence: the research
subset ARX ships, 3,016 rows. Losses of the family `rank` are printed to ten
digits. Levels may tie: the loss is what counts. Two cases with Grassberger's entropy estimate are left out
(not offered here). Where k-anonymity or l-diversity is asked for too, ARX does not count people of the
population who match no group.
"""

from typing import NamedTuple

from velado.release.guarantees.beta_likeness import BetaLikeness
from velado.release.guarantees.delta_presence import DeltaPresence
from velado.release.guarantees.entropy_l_diversity import EntropyLDiversity
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.guarantees.recursive_l_diversity import RecursiveLDiversity
from velado.release.guarantees.t_closeness import TCloseness


class Optimum(NamedTuple):
    """One case: quasi-identifiers, suppression limit, loss, guarantees, and what ARX found (None: no solution)."""

    source: str
    columns: int
    limit: float
    loss: str
    suppressed: str
    balance: float
    weighted: bool
    guarantees: tuple
    expected: tuple | None
    levels: tuple | None


# fmt: off
WEIGHTS = {"sex": 1, "age": 2, "race": 3, "marital-status": 4, "education": 5, "native-country": 6, "workclass": 7, "salary-class": 9}
"""The column weights of the weighted cases."""

OPTIMA = (
    Optimum("TestAnonymizationBLikeness#4", 8, 0.4, "geometric", "charged", 0.5, False, (BetaLikeness(5.0, "basic"),), (0.23350465152356303,), (0, 2, 0, 0, 2, 0, 1, 0)),
    Optimum("TestAnonymizationCombinations#0", 8, 0.0, "entropy", "ignored", 0.5, False, (DeltaPresence(0.05, 0.15, "counted"),), (37223.2491248282,), (1, 4, 1, 1, 1, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#1", 8, 0.0, "entropy", "ignored", 0.5, False, (KAnonymity(5), DeltaPresence(0.05, 0.15, "ignored")), (35461.300017243804,), (0, 2, 1, 2, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#2", 8, 0.0, "entropy", "ignored", 0.5, False, (KAnonymity(5), TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (42481.619746031596,), (1, 4, 1, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#3", 8, 0.0, "entropy", "ignored", 0.5, False, (KAnonymity(5), TCloseness(0.2, "hierarchical")), (398400.0741806447,), (0, 4, 1, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#5", 8, 0.0, "entropy", "ignored", 0.5, False, (TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "counted")), (42481.619746031596,), (1, 4, 1, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#6", 8, 0.0, "entropy", "ignored", 0.5, False, (TCloseness(0.2, "hierarchical"),), (398400.0741806447,), (0, 4, 1, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#45", 8, 0.05, "entropy", "charged", 0.5, False, (KAnonymity(5),), (180132.40848244698,), (0, 0, 1, 1, 2, 2, 2, 0)),
    Optimum("TestAnonymizationCombinations#51", 8, 0.05, "entropy", "ignored", 0.5, False, (KAnonymity(5), TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (40089.9423426752,), (1, 4, 0, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#53", 8, 0.05, "entropy", "ignored", 0.5, False, (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (28551.7222913157,), (1, 0, 1, 2, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#54", 8, 0.05, "entropy", "ignored", 0.5, False, (RecursiveLDiversity(4.0, 5),), (198181.4042332967,), (1, 0, 1, 1, 2, 2, 2, 0)),
    Optimum("TestAnonymizationCombinations#76", 8, 0.05, "entropy", "charged", 0.5, False, (KAnonymity(5), TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (40282.23779327559,), (1, 4, 0, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#77", 8, 0.05, "entropy", "charged", 0.5, False, (KAnonymity(5), TCloseness(0.2, "hierarchical")), (374778.01889889664,), (1, 4, 0, 0, 3, 1, 2, 1)),
    Optimum("TestAnonymizationCombinations#78", 8, 0.05, "entropy", "charged", 0.5, False, (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (28759.669970588497,), (1, 0, 1, 2, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#100", 8, 0.05, "entropy", "ignored", 0.5, False, (DeltaPresence(0.05, 0.15, "counted"),), (33649.9118226187,), (1, 4, 1, 1, 0, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#101", 8, 0.05, "entropy", "ignored", 0.5, False, (TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "counted")), (40089.9423426752,), (1, 4, 0, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationCombinations#116", 8, 0.05, "entropy", "charged", 0.5, False, (TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "counted")), (40282.23779327559,), (1, 4, 0, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationDPresence#3", 8, 0.05, "class-size", "charged", 0.5, False, (DeltaPresence(0.0, 0.2, "counted"),), (8.02127659574468,), (0, 0, 1, 2, 1, 2, 2, 1)),
    Optimum("TestAnonymizationDPresence#5", 8, 0.05, "entropy", "charged", 0.5, False, (DeltaPresence(0.0, 0.2, "counted"),), (20747.362350403302,), (1, 0, 1, 1, 2, 2, 2, 0)),
    Optimum("TestAnonymizationDPresence#6", 8, 0.0, "class-size", "charged", 0.5, False, (DeltaPresence(0.05, 0.15, "counted"),), (150.8,), (0, 4, 0, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationDPresence#8", 8, 0.0, "entropy", "charged", 0.5, False, (DeltaPresence(0.05, 0.15, "counted"),), (37223.2491248282,), (1, 4, 1, 1, 1, 2, 2, 1)),
    Optimum("TestAnonymizationDPresence#9", 8, 0.05, "class-size", "charged", 0.5, False, (DeltaPresence(0.05, 0.15, "counted"),), (97.29032258064517,), (1, 4, 1, 1, 0, 2, 2, 1)),
    Optimum("TestAnonymizationEntropyLDiversity#1", 8, 0.04, "entropy", "charged", 0.5, False, (EntropyLDiversity(100.0),), None, None),
    Optimum("TestAnonymizationKAnonymity#1", 9, 0.04, "entropy", "ignored", 0.5, False, (KAnonymity(100),), (379417.3460570988,), (1, 1, 1, 1, 3, 2, 2, 1, 1)),
    Optimum("TestAnonymizationKAnonymity#3", 9, 0.0, "entropy", "ignored", 0.5, False, (KAnonymity(100),), (453196.8932458743,), (0, 4, 1, 1, 3, 2, 2, 1, 1)),
    Optimum("TestAnonymizationLDiversity#0", 8, 0.04, "entropy", "charged", 0.5, False, (EntropyLDiversity(5.0),), (228878.2039109517,), (1, 0, 1, 1, 2, 2, 2, 1)),
    Optimum("TestAnonymizationLDiversity#2", 8, 0.0, "entropy", "charged", 0.5, False, (EntropyLDiversity(5.0),), (324620.5269918692,), (1, 1, 1, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationOrderedDistanceTCloseness#2", 8, 0.0, "discernibility", "ignored", 0.5, False, (TCloseness(0.1, "ordered"), KAnonymity(5)), (97868020.0,), (1, 1, 1, 2, 3, 2, 2, 1)),
    Optimum("TestAnonymizationTCloseness#1", 8, 0.04, "discernibility", "ignored", 0.5, False, (TCloseness(0.2, "equal"), KAnonymity(100)), (311880088.0,), (1, 4, 1, 0, 3, 2, 2, 1)),
    Optimum("TestAnonymizationTCloseness#2", 8, 0.04, "entropy", "ignored", 0.5, False, (KAnonymity(5), TCloseness(0.2, "hierarchical")), (377622.78458729305,), (1, 4, 0, 0, 3, 2, 2, 1)),
    Optimum("TestAnonymizationTCloseness#3", 8, 0.04, "entropy", "ignored", 0.5, False, (KAnonymity(100), TCloseness(0.2, "hierarchical")), (390765.61326019815,), (1, 4, 1, 0, 3, 1, 2, 1)),
    Optimum("TestAnonymizationTCloseness#4", 8, 0.0, "discernibility", "ignored", 0.5, False, (TCloseness(0.2, "equal"), KAnonymity(5)), (456853172.0,), (1, 4, 1, 1, 3, 2, 2, 1)),
    Optimum("TestAnonymizationTCloseness#7", 8, 0.0, "entropy", "ignored", 0.5, False, (KAnonymity(100), TCloseness(0.2, "hierarchical")), (398400.0741806447,), (0, 4, 1, 1, 3, 2, 2, 1)),
    Optimum("TestSolutionSpaceClassification2#0", 8, 0.04, "entropy", "charged", 0.5, False, (EntropyLDiversity(5.0),), (228878.2039109517,), (1, 0, 1, 1, 2, 2, 2, 1)),
    Optimum("TestUtilityMetricsLoss#1", 8, 1.0, "rank", "charged", 0.5, False, (KAnonymity(5),), (0.297248193, 0.29678055, 0.1297659306, 0.1297659306, 0.1297659306, 0.1297659306, 0.1297659306, 0.1297659306), (0, 3, 0, 0, 1, 0, 0, 0)),
    Optimum("TestUtilityMetricsLoss#3", 8, 1.0, "rank", "charged", 0.5, False, (RecursiveLDiversity(4.0, 5),), (0.4133583411, 0.4042130826, 0.3444444444, 0.3363245879, 0.1787016776, 0.1787016776, 0.1787016776, 0.1787016776), (0, 3, 0, 0, 1, 1, 1, 0)),
    Optimum("TestUtilityMetricsLoss#8", 8, 0.05, "rank", "charged", 0.5, False, (TCloseness(0.2, "hierarchical"),), (1.0, 1.0, 1.0, 1.0, 1.0, 0.3077954048, 0.0458855513, 0.0458855513), (1, 4, 0, 0, 3, 1, 2, 1)),
    Optimum("TestUtilityMetricsLoss#21", 8, 1.0, "rank", "charged", 0.33, False, (KAnonymity(5),), (0.2300344804, 0.1976148796, 0.1976148796, 0.1976148796, 0.1976148796, 0.1976148796, 0.1976148796, 0.1976148796), (0, 1, 0, 0, 0, 0, 0, 0)),
    Optimum("TestUtilityMetricsLoss#30", 8, 1.0, "rank", "charged", 0.66, False, (KAnonymity(5), TCloseness(0.2, "hierarchical")), (0.6778091018, 0.6746031746, 0.6657963446, 0.650273224, 0.6296296296, 0.5151515151, 0.2796355377, 0.0), (0, 4, 1, 1, 3, 2, 2, 1)),
    Optimum("TestUtilityMetricsLoss#31", 8, 1.0, "rank", "charged", 0.66, False, (KAnonymity(5),), (0.2366229645, 0.2359393534, 0.1843930011, 0.1821869476, 0.0624295471, 0.0624295471, 0.0624295471, 0.0624295471), (0, 3, 0, 0, 1, 1, 1, 0)),
    Optimum("TestUtilityMetricsLoss#33", 8, 1.0, "rank", "charged", 0.66, False, (RecursiveLDiversity(4.0, 5),), (0.3312926227, 0.3308323873, 0.2890526059, 0.2855399209, 0.1787016776, 0.1787016776, 0.1787016776, 0.1787016776), (0, 3, 0, 0, 1, 1, 1, 0)),
    Optimum("TestUtilityMetricsLoss#35", 8, 0.05, "rank", "charged", 0.66, False, (RecursiveLDiversity(4.0, 5),), (0.5350842822, 0.5350842822, 0.3064993339, 0.275396064, 0.2192655108, 0.2182427523, 0.165847957, 0.0411113321), (1, 3, 0, 1, 2, 1, 1, 1)),
    Optimum("TestUtilityMetricsLoss#51", 8, 1.0, "rank", "charged", 0.5, True, (KAnonymity(5),), (0.1485312645, 0.11552431683333335, 0.1111111111111111, 0.099020843, 0.08251736916666667, 0.06932099024444444, 0.06601389533333334, 0.0495104215), (1, 3, 0, 0, 0, 0, 0, 0)),
    Optimum("TestUtilityMetricsLoss#52", 8, 1.0, "rank", "charged", 0.5, True, (TCloseness(0.2, "hierarchical"),), (0.4444444444444444, 0.3789536502, 0.3663848550666667, 0.33608022844444446, 0.3333333333333333, 0.2947417279333333, 0.2222222222222222, 0.1111111111111111), (1, 4, 1, 2, 2, 1, 0, 0)),
    Optimum("TestUtilityMetricsLoss#53", 8, 1.0, "rank", "charged", 0.5, True, (RecursiveLDiversity(4.0, 5),), (0.2222222222222222, 0.19350814244444445, 0.1844373715, 0.14345128894444445, 0.12295824766666666, 0.1111111111111111, 0.0819721651111111, 0.06147912383333333), (1, 4, 0, 0, 1, 0, 0, 0)),
    Optimum("TestUtilityMetricsLoss#54", 8, 0.05, "rank", "charged", 0.5, True, (KAnonymity(5), TCloseness(0.2, "hierarchical")), (1.0, 0.7777777777777778, 0.3333333333333333, 0.2222222222222222, 0.22178016483333335, 0.20600362977777778, 0.2052615874, 0.1111111111111111), (1, 4, 1, 1, 2, 1, 2, 1)),
    Optimum("TestUtilityMetricsLoss#55", 8, 0.05, "rank", "charged", 0.5, True, (RecursiveLDiversity(4.0, 5),), (0.24683008046666668, 0.2222222222222222, 0.21898169633333336, 0.20640884897777778, 0.20387905306666665, 0.1111111111111111, 0.0442941449, 0.014764714966666665), (1, 4, 0, 1, 2, 1, 1, 0)),
    Optimum("TestUtilityMetricsLoss#70", 8, 1.0, "rank", "charged", 0.33, True, (KAnonymity(5), TCloseness(0.2, "hierarchical")), (0.3347921225, 0.3333333333333333, 0.3221498721666667, 0.2937121764444444, 0.26039387305555556, 0.22319474833333333, 0.2222222222222222, 0.1111111111111111), (1, 4, 1, 1, 2, 0, 0, 0)),
    Optimum("TestUtilityMetricsLoss#74", 8, 0.05, "rank", "charged", 0.33, True, (KAnonymity(5), TCloseness(0.2, "hierarchical")), (1.0, 0.7777777777777778, 0.3333333333333333, 0.2222222222222222, 0.21565420800000001, 0.20141782519999998, 0.19732445899999998, 0.1111111111111111), (1, 4, 1, 1, 2, 1, 2, 1)),
    Optimum("TestUtilityMetricsLoss#83", 8, 1.0, "rank", "charged", 0.66, True, (RecursiveLDiversity(4.0, 5),), (0.17255542997777776, 0.15402124916666668, 0.15379561604444444, 0.14714623919999997, 0.14022870031111112, 0.05962527379999999, 0.0442941449, 0.014764714966666665), (1, 4, 0, 1, 2, 1, 1, 0)),
)
