"""The laws a pack can be read by: one file each, and a line here."""

from velado.report.evidence.laws._law import Law
from velado.report.evidence.laws.gdpr import GDPR
from velado.report.evidence.laws.hipaa import HIPAA
from velado.report.evidence.laws.lgpd import LGPD

LAWS: dict[str, Law] = {law.name: law for law in (LGPD, GDPR, HIPAA)}
"""Every law, by its name."""
