"""Losses at single nodes of Adult's lattice, no search needed.

Source: the expected values in the JUnit tests of ARX 3.9.2 (commit aacd487fb77b), whose class and case number stand
beside each figure. Table and hierarchies: Adult as ARX ships it, 30,162 rows; quasi-identifiers in column
order sex, age, race, marital-status, education, native-country, workclass, (occupation,) salary-class;
occupation is the sensitive column except where it is a quasi-identifier. Delta-presence: the research
subset ARX ships, 3,016 rows. Three nodes of each case; people of the
population who match no group are not counted at a node.
"""

from typing import NamedTuple

from velado.release.guarantees.delta_presence import DeltaPresence
from velado.release.guarantees.k_anonymity import KAnonymity
from velado.release.guarantees.recursive_l_diversity import RecursiveLDiversity
from velado.release.guarantees.t_closeness import TCloseness


class NodeValues(NamedTuple):
    """One case: loss, guarantees, and the loss ARX reports at some nodes."""

    source: str
    loss: str
    suppressed: str
    guarantees: tuple
    values: tuple


# fmt: off
NODE_VALUES = (
    NodeValues("TestUtilityMetrics#0", "class-size", "charged", (DeltaPresence(0.05, 0.15, "ignored"),), (((0, 2, 0, 1, 0, 0, 1, 1), (11.211895910780669,)), ((0, 4, 1, 2, 3, 2, 1, 0), (335.1111111111111,)), ((1, 4, 0, 2, 3, 2, 2, 1), (603.2,)))),
    NodeValues("TestUtilityMetrics#4", "class-size", "charged", (KAnonymity(5),), (((0, 3, 1, 0, 0, 1, 1, 0), (53.38407079646018,)), ((0, 3, 1, 2, 3, 1, 2, 1), (837.8333333333334,)), ((1, 4, 1, 2, 3, 1, 2, 1), (6032.4,)))),
    NodeValues("TestUtilityMetrics#7", "class-size", "charged", (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (((1, 2, 0, 0, 0, 2, 0, 0), (55.851851851851855,)), ((1, 4, 0, 1, 3, 2, 2, 1), (301.6,)), ((1, 4, 0, 2, 3, 2, 2, 1), (603.2,)))),
    NodeValues("TestUtilityMetrics#8", "class-size", "charged", (RecursiveLDiversity(4.0, 5),), (((0, 1, 1, 1, 0, 1, 0, 1), (75.21695760598504,)), ((1, 4, 1, 1, 3, 2, 2, 0), (7540.5,)), ((1, 4, 1, 2, 2, 2, 2, 1), (10054.0,)))),
    NodeValues("TestUtilityMetrics#9", "class-size", "charged", (KAnonymity(5),), (((0, 1, 1, 0, 0, 0, 0, 0), (30.683621566632755,)), ((1, 4, 1, 0, 2, 0, 1, 0), (160.43617021276594,)), ((1, 1, 0, 2, 3, 2, 2, 1), (520.0344827586207,)))),
    NodeValues("TestUtilityMetrics#18", "class-size", "charged", (RecursiveLDiversity(4.0, 5),), (((1, 0, 0, 0, 1, 0, 1, 1), (52.455652173913045,)), ((0, 3, 0, 0, 1, 1, 2, 1), (154.6769230769231,)), ((0, 2, 1, 1, 3, 2, 1, 1), (603.24,)))),
    NodeValues("TestUtilityMetrics#23", "entropy", "charged", (KAnonymity(5),), (((0, 1, 0, 1, 0, 2, 1, 1), (199996.96695661292,)), ((0, 4, 1, 2, 3, 2, 0, 1), (385895.4270913376,)), ((1, 2, 1, 2, 3, 2, 2, 1), (382559.9421471483,)))),
    NodeValues("TestUtilityMetrics#28", "entropy", "charged", (KAnonymity(5),), (((0, 1, 0, 1, 0, 1, 0, 1), (206422.97000364092,)), ((0, 1, 0, 0, 1, 2, 2, 1), (213938.9707150555,)), ((1, 3, 1, 2, 1, 2, 0, 1), (315247.228170622,)))),
    NodeValues("TestUtilityMetrics#39", "discernibility", "charged", (KAnonymity(5), DeltaPresence(0.05, 0.15, "ignored")), (((1, 2, 1, 1, 3, 2, 0, 1), (902172.0,)), ((1, 3, 1, 2, 2, 2, 2, 1), (1844009.0,)), ((1, 3, 1, 2, 3, 2, 2, 1), (3699562.0,)))),
    NodeValues("TestUtilityMetrics#42", "discernibility", "charged", (KAnonymity(5),), (((0, 0, 1, 0, 3, 2, 0, 0), (110335369.0,)), ((1, 4, 1, 2, 3, 1, 2, 0), (520820000.0,)), ((1, 4, 0, 2, 3, 2, 2, 1), (681392160.0,)))),
    NodeValues("TestUtilityMetrics#46", "discernibility", "charged", (RecursiveLDiversity(4.0, 5),), (((1, 1, 1, 0, 2, 1, 0, 0), (172317967.0,)), ((1, 1, 1, 2, 3, 2, 2, 1), (97868020.0,)), ((0, 4, 1, 2, 3, 2, 2, 1), (511031924.0,)))),
    NodeValues("TestUtilityMetrics#52", "discernibility", "charged", (KAnonymity(5), DeltaPresence(0.05, 0.15, "ignored")), (((0, 2, 0, 0, 2, 0, 1, 1), (2529631.0,)), ((0, 3, 1, 1, 3, 1, 1, 0), (997016.0,)), ((1, 4, 0, 2, 3, 2, 2, 0), (4168425.0,)))),
    NodeValues("TestUtilityMetrics#53", "discernibility", "charged", (KAnonymity(5), TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (((1, 1, 0, 0, 2, 2, 2, 0), (6456349.0,)), ((1, 3, 0, 0, 2, 1, 1, 1), (5832609.0,)), ((1, 4, 0, 1, 3, 2, 2, 1), (3618711.0,)))),
    NodeValues("TestUtilityMetrics#54", "discernibility", "charged", (KAnonymity(5), TCloseness(0.2, "hierarchical")), (((1, 0, 1, 0, 0, 1, 1, 1), (752467594.0,)), ((1, 1, 1, 1, 0, 2, 2, 1), (476568155.0,)), ((1, 4, 1, 1, 3, 2, 2, 1), (456853172.0,)))),
    NodeValues("TestUtilityMetrics#56", "discernibility", "charged", (RecursiveLDiversity(4.0, 5),), (((1, 1, 1, 1, 0, 0, 1, 0), (232827528.0,)), ((0, 2, 1, 1, 2, 2, 0, 1), (111508216.0,)), ((1, 3, 0, 1, 3, 1, 0, 1), (104882645.0,)))),
    NodeValues("TestUtilityMetrics#57", "discernibility", "ignored", (DeltaPresence(0.05, 0.15, "ignored"),), (((0, 0, 0, 1, 2, 2, 0, 1), (19708.0,)), ((0, 2, 1, 2, 3, 2, 2, 1), (1104390.0,)), ((1, 4, 1, 1, 3, 2, 2, 1), (4565056.0,)))),
    NodeValues("TestUtilityMetrics#58", "discernibility", "ignored", (KAnonymity(5), DeltaPresence(0.05, 0.15, "ignored")), (((0, 4, 0, 1, 3, 1, 2, 0), (1362322.0,)), ((0, 4, 1, 2, 2, 2, 2, 1), (2507114.0,)), ((1, 4, 1, 2, 2, 2, 2, 1), (4454190.0,)))),
    NodeValues("TestUtilityMetrics#59", "discernibility", "ignored", (KAnonymity(5), TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (((0, 0, 0, 1, 2, 0, 2, 0), (21488.0,)), ((0, 4, 1, 2, 3, 0, 2, 0), (2622066.0,)), ((0, 4, 1, 2, 3, 2, 2, 1), (5135656.0,)))),
    NodeValues("TestUtilityMetrics#60", "discernibility", "ignored", (KAnonymity(5), TCloseness(0.2, "hierarchical")), (((0, 1, 0, 0, 1, 0, 0, 1), (4544210.0,)), ((1, 4, 0, 2, 3, 1, 2, 1), (646582034.0,)), ((0, 4, 1, 2, 3, 2, 2, 1), (511031924.0,)))),
    NodeValues("TestUtilityMetrics#61", "discernibility", "ignored", (KAnonymity(5),), (((1, 1, 0, 1, 0, 2, 0, 0), (4426432.0,)), ((1, 4, 1, 2, 2, 2, 1, 0), (215306610.0,)), ((1, 3, 1, 2, 3, 2, 2, 1), (367709850.0,)))),
    NodeValues("TestUtilityMetrics#62", "discernibility", "ignored", (TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (((0, 3, 0, 0, 0, 1, 2, 0), (105264.0,)), ((0, 3, 1, 2, 0, 2, 2, 1), (429404.0,)), ((0, 4, 1, 2, 3, 2, 2, 1), (5135656.0,)))),
    NodeValues("TestUtilityMetrics#64", "discernibility", "ignored", (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (((1, 0, 0, 1, 0, 1, 1, 1), (17440.0,)), ((1, 4, 1, 2, 3, 2, 1, 0), (4355544.0,)), ((1, 4, 1, 1, 3, 2, 2, 1), (4565056.0,)))),
    NodeValues("TestUtilityMetrics#71", "discernibility", "ignored", (KAnonymity(5), DeltaPresence(0.05, 0.15, "ignored")), (((1, 4, 0, 1, 0, 1, 0, 0), (295632.0,)), ((0, 2, 1, 2, 3, 1, 1, 0), (504522.0,)), ((0, 4, 1, 0, 2, 2, 1, 1), (814530.0,)))),
    NodeValues("TestUtilityMetrics#73", "discernibility", "ignored", (KAnonymity(5), TCloseness(0.2, "hierarchical")), (((1, 3, 0, 1, 0, 0, 0, 0), (12523398.0,)), ((0, 3, 0, 1, 2, 0, 1, 1), (32004598.0,)), ((1, 4, 1, 1, 3, 2, 2, 1), (456853172.0,)))),
    NodeValues("TestUtilityMetrics#96", "height", "charged", (KAnonymity(5), DeltaPresence(0.05, 0.15, "ignored")), (((0, 2, 1, 0, 1, 1, 0, 0), (5.0,)), ((1, 3, 1, 2, 2, 2, 2, 1), (14.0,)), ((0, 4, 1, 2, 3, 2, 2, 1), (15.0,)))),
    NodeValues("TestUtilityMetrics#97", "height", "charged", (KAnonymity(5), TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (((0, 0, 1, 0, 1, 2, 2, 1), (7.0,)), ((0, 4, 1, 2, 2, 2, 2, 1), (14.0,)), ((0, 4, 1, 2, 3, 2, 2, 1), (15.0,)))),
    NodeValues("TestUtilityMetrics#99", "height", "charged", (KAnonymity(5),), (((0, 3, 0, 1, 3, 2, 1, 0), (10.0,)), ((1, 4, 1, 0, 2, 2, 2, 1), (13.0,)), ((0, 3, 1, 2, 3, 2, 2, 1), (14.0,)))),
    NodeValues("TestUtilityMetrics#101", "height", "charged", (TCloseness(0.2, "hierarchical"),), (((0, 3, 1, 0, 2, 0, 2, 0), (8.0,)), ((0, 4, 1, 2, 1, 2, 2, 1), (13.0,)), ((1, 4, 0, 2, 3, 2, 2, 1), (15.0,)))),
    NodeValues("TestUtilityMetrics#102", "height", "charged", (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (((1, 2, 0, 0, 1, 0, 0, 0), (4.0,)), ((0, 4, 1, 2, 3, 2, 2, 0), (14.0,)), ((1, 4, 1, 2, 3, 2, 2, 0), (15.0,)))),
    NodeValues("TestUtilityMetrics#111", "height", "charged", (KAnonymity(5), TCloseness(0.2, "hierarchical")), (((0, 1, 0, 2, 0, 1, 1, 0), (5.0,)), ((1, 0, 1, 2, 2, 1, 1, 1), (9.0,)), ((1, 4, 0, 2, 3, 2, 2, 1), (15.0,)))),
    NodeValues("TestUtilityMetrics#112", "height", "charged", (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (((0, 2, 1, 0, 0, 0, 0, 0), (3.0,)), ((1, 1, 1, 2, 3, 1, 0, 1), (10.0,)), ((0, 4, 0, 2, 3, 1, 2, 0), (12.0,)))),
    NodeValues("TestUtilityMetrics#114", "rank", "charged", (DeltaPresence(0.05, 0.15, "ignored"),), (((1, 1, 0, 2, 0, 2, 0, 0), (1.0, 1.0, 1.0, 0.2993931356, 0.2698938992, 0.2698938992, 0.2698938992, 0.2698938992)), ((1, 4, 1, 1, 2, 2, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.431918656, 0.3663793103)), ((1, 4, 1, 2, 3, 2, 2, 0), (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)))),
    NodeValues("TestUtilityMetrics#118", "rank", "charged", (KAnonymity(5),), (((0, 0, 0, 2, 0, 0, 0, 0), (1.0, 0.3843909555, 0.3843909555, 0.3843909555, 0.3843909555, 0.3843909555, 0.3843909555, 0.3843909555)), ((0, 4, 1, 1, 3, 1, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 0.4331609309, 0.2728756382, 0.0)), ((0, 4, 0, 2, 3, 2, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0)))),
    NodeValues("TestUtilityMetrics#120", "rank", "charged", (TCloseness(0.2, "hierarchical"),), (((0, 0, 0, 1, 2, 0, 2, 1), (1.0, 1.0, 0.9042614327, 0.882043631, 0.808666534, 0.808666534, 0.808666534, 0.808666534)), ((0, 4, 0, 2, 3, 1, 2, 0), (1.0, 1.0, 1.0, 1.0, 0.6536685233, 0.5231417014, 0.5231417014, 0.5231417014)), ((0, 4, 1, 2, 3, 2, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)))),
    NodeValues("TestUtilityMetrics#121", "rank", "charged", (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (((0, 1, 1, 2, 1, 0, 0, 1), (1.0, 1.0, 1.0, 0.5344827586, 0.4381145674, 0.4144562334, 0.4144562334, 0.4144562334)), ((1, 3, 0, 2, 3, 2, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1948664362, 0.0036472148)), ((1, 4, 1, 1, 3, 2, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.431918656)))),
    NodeValues("TestUtilityMetrics#122", "rank", "charged", (RecursiveLDiversity(4.0, 5),), (((0, 1, 0, 1, 1, 2, 2, 0), (1.0, 1.0, 0.5110735362, 0.3079835554, 0.1690628183, 0.1340759896, 0.1340759896, 0.1340759896)), ((0, 4, 0, 1, 3, 2, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 0.4331609309, 0.0, 0.0)), ((1, 4, 1, 2, 2, 2, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.3667727604)))),
    NodeValues("TestUtilityMetrics#123", "rank", "charged", (KAnonymity(5),), (((1, 1, 1, 0, 1, 0, 1, 1), (1.0, 1.0, 1.0, 0.3444921234, 0.258026656, 0.1193682062, 0.0822889728, 0.0822889728)), ((0, 2, 1, 1, 1, 1, 1, 1), (1.0, 1.0, 0.4441902614, 0.2991180956, 0.287697268, 0.2057865305, 0.1079684853, 0.0187653338)), ((1, 2, 1, 0, 3, 0, 1, 1), (1.0, 1.0, 1.0, 1.0, 0.3107694639, 0.1227974995, 0.0350772495, 0.0350772495)))),
    NodeValues("TestUtilityMetrics#128", "rank", "charged", (KAnonymity(5), DeltaPresence(0.05, 0.15, "ignored")), (((0, 4, 0, 2, 1, 0, 0, 1), (1.0, 1.0, 1.0, 0.2968611847, 0.1266578249, 0.1266578249, 0.1266578249, 0.1266578249)), ((1, 3, 0, 2, 2, 0, 2, 1), (1.0, 1.0, 1.0, 1.0, 0.422877984, 0.2610454679, 0.0855437665, 0.0855437665)), ((1, 3, 1, 0, 2, 2, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 0.3797966401, 0.2077271387, 0.0195623342)))),
    NodeValues("TestUtilityMetrics#130", "rank", "charged", (KAnonymity(5), TCloseness(0.2, "hierarchical")), (((1, 2, 1, 1, 0, 0, 2, 0), (1.0, 1.0, 1.0, 0.7703733174, 0.6082065934, 0.5690272528, 0.5690272528, 0.5690272528)), ((1, 3, 0, 2, 3, 0, 1, 0), (1.0, 1.0, 1.0, 0.6148417592, 0.5642654246, 0.4607784629, 0.4607784629, 0.4607784629)), ((1, 4, 1, 1, 2, 2, 2, 1), (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.4423391463, 0.3806798841)))),
    NodeValues("TestUtilityMetrics#132", "rank", "charged", (RecursiveLDiversity(4.0, 5),), (((1, 0, 1, 0, 0, 0, 0, 0), (1.0, 1.0, 0.5243684105, 0.5243684105, 0.5243684105, 0.5243684105, 0.5243684105, 0.5243684105)), ((0, 3, 0, 0, 1, 1, 2, 1), (1.0, 1.0, 0.3623085339, 0.2966735185, 0.2898415894, 0.1211789669, 0.1211789669, 0.1211789669)), ((1, 4, 0, 1, 2, 0, 2, 1), (1.0, 1.0, 1.0, 1.0, 0.4496220409, 0.3849634197, 0.0276506862, 0.0276506862)))),
    NodeValues("TestUtilityMetrics#133", "precision", "charged", (DeltaPresence(0.05, 0.15, "ignored"),), (((1, 3, 0, 1, 3, 1, 0, 0), (0.4986944628647215,)), ((1, 4, 1, 1, 3, 2, 1, 1), (0.875,)), ((1, 3, 1, 2, 3, 2, 2, 1), (0.96875,)))),
    NodeValues("TestUtilityMetrics#135", "precision", "charged", (KAnonymity(5), TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (((0, 3, 1, 1, 2, 0, 1, 0), (0.8833651083112289,)), ((1, 4, 1, 2, 3, 2, 0, 1), (0.8969247347480106,)), ((0, 4, 1, 2, 3, 2, 2, 1), (0.875,)))),
    NodeValues("TestUtilityMetrics#136", "precision", "charged", (KAnonymity(5), TCloseness(0.2, "hierarchical")), (((0, 3, 1, 1, 0, 0, 2, 1), (0.8704651133877064,)), ((1, 4, 1, 0, 3, 2, 2, 1), (0.875087030037796,)), ((0, 4, 1, 2, 3, 2, 2, 1), (0.875,)))),
    NodeValues("TestUtilityMetrics#137", "precision", "charged", (KAnonymity(5),), (((0, 0, 0, 2, 1, 2, 0, 0), (0.45063186570298164,)), ((1, 4, 1, 2, 2, 2, 1, 0), (0.7708713226355458,)), ((1, 4, 1, 2, 3, 2, 0, 1), (0.875,)))),
    NodeValues("TestUtilityMetrics#139", "precision", "charged", (TCloseness(0.2, "hierarchical"),), (((0, 1, 0, 0, 3, 2, 2, 0), (0.7387161411710098,)), ((1, 4, 1, 2, 2, 2, 2, 1), (0.9590019450522733,)), ((1, 3, 1, 2, 3, 2, 2, 1), (0.9708200716132882,)))),
    NodeValues("TestUtilityMetrics#140", "precision", "charged", (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (((1, 4, 1, 0, 2, 1, 1, 0), (0.6196673297966402,)), ((0, 4, 1, 2, 3, 2, 2, 0), (0.75,)), ((1, 4, 1, 1, 3, 2, 2, 1), (0.9375,)))),
    NodeValues("TestUtilityMetrics#142", "precision", "charged", (KAnonymity(5),), (((0, 1, 0, 0, 0, 0, 1, 0), (0.30136844373715277,)), ((0, 4, 0, 2, 1, 0, 0, 0), (0.3254370841898194,)), ((0, 4, 1, 1, 3, 1, 0, 1), (0.6261686890789736,)))),
    NodeValues("TestUtilityMetrics#148", "precision", "charged", (KAnonymity(5), TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (((1, 1, 0, 0, 0, 0, 0, 0), (0.9353759118037137,)), ((0, 4, 0, 2, 2, 2, 2, 0), (0.7517407161803713,)), ((1, 4, 0, 2, 3, 2, 2, 1), (0.8769479442970822,)))),
    NodeValues("TestUtilityMetrics#150", "precision", "charged", (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (((0, 0, 1, 0, 3, 2, 0, 0), (0.7882128647214854,)), ((0, 3, 0, 1, 3, 0, 1, 1), (0.5552366545092838,)), ((0, 4, 0, 1, 3, 2, 2, 0), (0.583098474801061,)))),
    NodeValues("TestUtilityMetrics#151", "precision", "charged", (RecursiveLDiversity(4.0, 5),), (((0, 1, 1, 1, 0, 0, 0, 1), (0.566024716530734,)), ((0, 3, 0, 1, 1, 0, 1, 0), (0.40084481300974734,)), ((0, 4, 0, 0, 3, 0, 2, 0), (0.4049631987268748,)))),
    NodeValues("TestUtilityMetrics#153", "precision", "ignored", (KAnonymity(5), DeltaPresence(0.05, 0.15, "ignored")), (((1, 0, 1, 1, 3, 0, 1, 0), (0.5,)), ((0, 4, 1, 2, 2, 2, 2, 0), (0.7083333333333333,)), ((1, 4, 1, 1, 3, 2, 2, 1), (0.9375,)))),
    NodeValues("TestUtilityMetrics#154", "precision", "ignored", (KAnonymity(5), TCloseness(0.2, "hierarchical"), DeltaPresence(0.05, 0.15, "ignored")), (((0, 0, 1, 0, 0, 0, 1, 0), (0.1875,)), ((1, 4, 1, 2, 3, 2, 2, 0), (0.875,)), ((1, 4, 1, 1, 3, 2, 2, 1), (0.9375,)))),
    NodeValues("TestUtilityMetrics#168", "precision", "ignored", (KAnonymity(5), TCloseness(0.2, "hierarchical")), (((1, 1, 0, 1, 0, 0, 2, 0), (0.34375,)), ((1, 4, 1, 0, 1, 1, 0, 1), (0.6041666666666667,)), ((1, 4, 0, 2, 3, 2, 2, 1), (0.875,)))),
    NodeValues("TestUtilityMetrics#169", "precision", "ignored", (RecursiveLDiversity(4.0, 5), DeltaPresence(0.05, 0.15, "ignored")), (((1, 2, 0, 1, 0, 1, 1, 0), (0.375,)), ((1, 3, 1, 0, 0, 0, 1, 1), (0.53125,)), ((0, 4, 0, 2, 3, 1, 2, 0), (0.5625,)))),
)
