"""What can be decided about a side door: one file each, and a line here.

The desk's forms, what its signature says and the words of an evidence pack read this registry.
"""

from velado.release.side_doors.decisions._decision import Decision as Decision
from velado.release.side_doors.decisions._decision import Edit as Edit
from velado.release.side_doors.decisions._decision import number_given as number_given
from velado.release.side_doors.decisions.accept import Accept
from velado.release.side_doors.decisions.generalize import MakeCoarser
from velado.release.side_doors.decisions.hold import Hold
from velado.release.side_doors.decisions.quasi import CallQuasi
from velado.release.side_doors.decisions.round import RoundOff

DECISIONS: dict[str, Decision] = {
    one.name: one for one in (Hold(), RoundOff(), MakeCoarser(), CallQuasi(), Accept())
}
"""Every decision, by its name, in the order in which a person is offered them."""
