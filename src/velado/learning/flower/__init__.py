"""Federated training: clients anonymize their own rows, train on them, and only weights, trees and counts travel.

`Federation` holds the settings, `simulate` runs them on one machine, `FederatedFit` is what comes back; `deployment`
writes what several machines need. This is the only room that imports Flower, and it does so only when a run starts.
"""

from velado.learning.flower.federation import Federation
from velado.learning.flower.flower_records import ClientRecord, FederatedFit, FederationStopped, RoundRecord
from velado.learning.flower.simulation import simulate

__all__ = ["ClientRecord", "FederatedFit", "Federation", "FederationStopped", "RoundRecord", "simulate"]
