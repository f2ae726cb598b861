"""What `velado evaluate` prints, in English and Portuguese, under the same keys."""

from __future__ import annotations

EN = {
    "evaluate_grid": "The grid",
    "evaluate_method": "method",
    "evaluate_releases": "releases",
    "evaluate_federated": "runs across clients",
    "evaluate_cells": "cells",
    "evaluate_cost": "{cells} cells, {missing} to compute: about {minutes} min on {workers} process(es), roughly.",
    "evaluate_setting": "setting",
    "evaluate_loss": "{name}",
    "evaluate_risk": "risk: {name}",
    "evaluate_drop": "points of {name} lost",
    "evaluate_written": "Written in {folder}: {files}",
}

PT = {
    "evaluate_grid": "A grade",
    "evaluate_method": "método",
    "evaluate_releases": "publicações",
    "evaluate_federated": "treinos entre clientes",
    "evaluate_cells": "células",
    "evaluate_cost": "{cells} células, {missing} a calcular: cerca de {minutes} min em {workers} processo(s), aproximadamente.",
    "evaluate_setting": "configuração",
    "evaluate_loss": "{name}",
    "evaluate_risk": "risco: {name}",
    "evaluate_drop": "pontos de {name} perdidos",
    "evaluate_written": "Escrito em {folder}: {files}",
}


def say(lang: str, key: str, **parts: object) -> str:
    """The text under *key* in the language *lang*, its places filled."""
    return (PT if lang == "pt" else EN)[key].format(**parts)
