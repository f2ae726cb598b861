"""What `velado evaluate` prints, in English and Portuguese, under the same keys."""

from __future__ import annotations

EN = {
    "evaluate_grid": "The grid",
    "evaluate_method": "method",
    "evaluate_releases": "releases",
    "evaluate_federated": "runs across clients",
    "evaluate_cells": "cells",
    "evaluate_cost": "{cells} cells, {missing} to compute: about {minutes} min on {workers} process(es), roughly.",
    "evaluate_cold": "The first run also compiles its kernels once, which may take a minute more.",
    "evaluate_damaged": "{count} stored cell(s) were damaged on the disk; they do not count and are computed again.",
    "evaluate_interrupted": "Interrupted: finished cells are kept, and the same command goes on from there.",
    "evaluate_setting": "setting",
    "evaluate_loss": "{name}",
    "evaluate_risk": "risk: {name}",
    "evaluate_drop": "points of {name} lost",
    "evaluate_drop_plain": "{name} lost",
    "evaluate_written": "Written in {folder}: {files}",
    "evaluate_page": "The page to decide from, for a browser: {page}",
}

PT = {
    "evaluate_grid": "A grade",
    "evaluate_method": "método",
    "evaluate_releases": "publicações",
    "evaluate_federated": "treinos entre clientes",
    "evaluate_cells": "células",
    "evaluate_cost": "{cells} células, {missing} a calcular: cerca de {minutes} min em {workers} processo(s), aproximadamente.",
    "evaluate_cold": "A primeira execução também compila seus núcleos uma vez, o que pode levar um minuto a mais.",
    "evaluate_damaged": "{count} célula(s) guardada(s) estavam danificadas no disco; não contam e são calculadas de novo.",
    "evaluate_interrupted": "Interrompido: as células prontas ficam guardadas, e o mesmo comando continua dali.",
    "evaluate_setting": "configuração",
    "evaluate_loss": "{name}",
    "evaluate_risk": "risco: {name}",
    "evaluate_drop": "pontos de {name} perdidos",
    "evaluate_drop_plain": "{name}: perda",
    "evaluate_written": "Escrito em {folder}: {files}",
    "evaluate_page": "A página para decidir, em um navegador: {page}",
}


def say(lang: str, key: str, **parts: object) -> str:
    """The text under *key* in the language *lang*, its places filled."""
    return (PT if lang == "pt" else EN)[key].format(**parts)
